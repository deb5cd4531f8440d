// All routes of the server with their fields and limits, as its own OpenAPI document describes them.

import { make } from "../lib/dom.mjs";

/** @typedef {Record<string, any>} Schema a JSON Schema, or another part of the document */

/** @param {number} value */
const digits = (value) => value.toLocaleString("en");

/** Text in which code stands between backquotes. @param {string} text */
const written = (text) => text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));

/** What a value may be, in words. @param {Schema} schema */
function limits(schema) {
  const all = [schema, ...(schema.anyOf ?? [])];
  const of = (/** @type {string} */ name) => all.find((each) => each[name] !== undefined)?.[name];
  const [least, most] = [of("minimum"), of("maximum")];
  const range = [least !== undefined && `at least ${digits(least)}`, most !== undefined && `at most ${digits(most)}`];
  const sizes = [
    of("maxLength") !== undefined && `at most ${digits(of("maxLength"))} characters`,
    of("maxItems") !== undefined && `at most ${digits(of("maxItems"))} entries`,
  ];
  const isPlain = schema.default !== undefined && schema.default !== null && schema.default !== "";
  const standard = isPlain && `${JSON.stringify(schema.default)} by default`;
  return [...range, ...sizes, standard].filter(Boolean).join(", ");
}

export class RouteList {
  #isFilled = false;

  /** @param {() => Promise<Schema>} load the document, which is asked for once the list is opened */
  constructor(load) {
    this.load = load;
    this.list = make("div", { role: "status" });
    const raw = make("a", { href: "v1/openapi.json" }, "The same as an OpenAPI document");
    const summary = make("summary", {}, make("h3", {}, "All routes and limits"));
    this.element = make("details", { class: "hu-routes", id: "use/routes" }, summary, make("p", {}, raw), this.list);
    this.element.addEventListener("toggle", () => this.element.open && void this.fill());
  }

  async fill() {
    if (this.#isFilled) return;
    this.#isFilled = true;
    try {
      const document = await this.load();
      const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(/** @type {Schema} */ (methods)).map(([method, route]) =>
          this.#route(document, path, method, route),
        ),
      );
      this.list.replaceChildren(...routes);
    } catch (error) {
      this.#isFilled = false;
      this.list.replaceChildren(make("p", { class: "hu-problem" }, /** @type {Error} */ (error).message));
    }
  }

  /** @param {Schema} document @param {string} path @param {string} method @param {Schema} route */
  #route(document, path, method, { description = "", parameters = [], requestBody }) {
    const name = make("code", {}, `${method.toUpperCase()} ${document.servers?.[0]?.url ?? ""}${path}`);
    const resolved = (/** @type {Schema} */ { $ref, ...schema }) =>
      $ref ? document.components.schemas[$ref.split("/").at(-1)] : schema;
    const body = resolved(requestBody?.content?.["application/json"]?.schema ?? {});
    /** @type {[string, Schema][]} */
    const fields = [
      ...parameters.map((/** @type {Schema} */ each) => [each.name, { ...each.schema, description: each.description }]),
      ...Object.entries(body.properties ?? {}),
    ];
    const rows = fields.flatMap(([field, schema]) => {
      const words = [schema.description ?? "", limits(schema)].filter(Boolean).join(" ");
      return [make("dt", {}, field), make("dd", {}, ...written(words))];
    });
    const about = make("span", {}, ...written(description.split("\n\n")[0]));
    const line = [name, " ", about];
    return rows.length
      ? make("details", {}, make("summary", {}, ...line), make("dl", {}, ...rows))
      : make("p", {}, ...line);
  }
}
