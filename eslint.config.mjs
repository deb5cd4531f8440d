import js from "@eslint/js";
import globals from "globals";

/** What texts on the page are written with: ’ in words, and one … without three full stops. */
const TYPOGRAPHY = ["Literal[value=PATTERN]", "TemplateElement[value.raw=PATTERN]"].flatMap((node) => [
  { selector: node.replace("PATTERN", "/[a-z]'(s |t |re |ll |,|$)/"), message: "Write ’, not '." },
  { selector: node.replace("PATTERN", String.raw`/[a-z ]\.\.\.$/`), message: "Write …, not three full stops." },
  { selector: node.replace("PATTERN", String.raw`/^ %|[0-9] %(?! \d)/`), message: "Write 41%, without a space." },
]);

/** Folders that modules of a folder may not import from. */
const imports = (...patterns) => ({
  "no-restricted-imports": ["error", { patterns: patterns.map(([regex, message]) => ({ regex, message })) }],
});
const LOOK = ["/look/", "Only web/js/look imports from web/js/look."];
const LEARN = ["/learn/", "Only web/js/learn imports from web/js/learn."];
const TRAIN = ["/train/", "Only web/js/train imports from web/js/train."];
const USE = ["/use/", "Only web/js/use imports from web/js/use."];

export default [
  { ignores: ["node_modules/", "**/.venv/", "**/venv/", "web/js/vendor/"] }, // the last is of other projects
  js.configs.recommended,
  {
    rules: {
      "consistent-return": "error",
      eqeqeq: ["error", "always", { null: "ignore" }], // == null is how to ask for null or undefined
      "max-len": ["error", { code: 120 }],
      "max-lines": ["error", 500],
      "max-lines-per-function": ["error", { max: 60, skipBlankLines: true, skipComments: true }],
      "no-console": "error",
      "no-constructor-return": "error",
      "no-implicit-coercion": "error",
      "no-implicit-globals": "error",
      "no-param-reassign": "error",
      "no-shadow": ["error", { allow: ["name", "status"] }], // names of windows that nobody means
      "no-template-curly-in-string": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-useless-rename": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
  {
    files: ["web/js/**"],
    languageOptions: { globals: globals.browser },
    rules: { "no-restricted-syntax": ["error", ...TYPOGRAPHY] },
  },
  {
    files: ["web/js/lib/**"],
    rules: imports(LOOK, LEARN, TRAIN, USE, ["/widgets/", "web/js/lib imports nothing above it."]),
  },
  { files: ["web/js/{calls,widgets}/**"], rules: imports(LOOK, LEARN, TRAIN, USE) },
  { files: ["web/js/look/**"], rules: imports(LEARN, TRAIN, USE) },
  { files: ["web/js/learn/**"], rules: imports(LOOK, TRAIN, USE) },
  { files: ["web/js/learn/content/**"], rules: { "max-len": "off" } }, // a paragraph is a line
  { files: ["web/js/train/**"], rules: imports(LOOK, LEARN, USE) },
  { files: ["web/js/use/**"], rules: imports(LOOK, LEARN, TRAIN) },
  { files: ["tests/kit/**"], languageOptions: { globals: globals.browser } },
  { files: ["tests/js/**", "*.mjs"], languageOptions: { globals: globals.node } },
];
