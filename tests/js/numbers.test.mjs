import assert from "node:assert/strict";
import { test } from "node:test";
import {
  counted,
  brief,
  exact,
  fixed,
  full,
  number,
  percent,
  probabilityChange,
  probabilityMove,
  share,
  signed,
  withoutZero,
  withSign,
} from "../../web/js/lib/numbers.mjs";
import { listed } from "../../web/js/lib/words.mjs";

test("numbers as they are written", () => {
  assert.deepEqual([exact(0.98854), exact(0.00012345), exact(0)], ["0.9885", "1.23e-4", "0.0000"]);
  assert.deepEqual([number(3), number(-0.5), number(1e-7)], ["3", "−0.5000", "1.0e−7"]);
  assert.deepEqual([fixed(-0.00001), fixed(-1.5, 1)], ["0.0000", "−1.5"]);
  assert.deepEqual([percent(0.412), percent(-0.001), percent(-0.034, 1)], ["41%", "0%", "−3.4%"]);
  assert.equal(signed(-2, 1), "−2.0");
  assert.deepEqual(
    [-0.0004, 0, 0.0004, 0.0006].map((value) => signed(value, 3)),
    ["0.000", "0.000", "0.000", "+0.001"],
  );
  assert.deepEqual(
    [-0.00012345, 0, 0.25].map((value) => withSign(value, exact)),
    ["−1.23e-4", "0.0000", "+0.2500"],
  );
  assert.deepEqual([0, 1.73e-4, 0.0005, 0.25].map(brief), ["0.000", "<0.001", "0.001", "0.250"]);
  assert.deepEqual(["0.25", "−0.25", "10.3", "100"].map(withoutZero), [".25", "−.25", "10.3", "100"]);
  assert.equal(full(Math.fround(0.1)), "0.1");
  assert.equal(Math.fround(Number(full(Math.fround(Math.PI)))), Math.fround(Math.PI));
});

test("shares and changes of a probability in plain words", () => {
  assert.deepEqual([0, 0.0005, 0.0123, 0.411, 1].map(share), ["0%", "under 0.1%", "1.2%", "41%", "100%"]);
  assert.equal(probabilityChange(Math.log(6.5)), "6.5 times less probable");
  assert.equal(probabilityChange(-Math.log(27)), "27 times as probable");
  assert.equal(probabilityChange(-Math.log(1.28)), "28% more probable");
  assert.equal(probabilityChange(Math.log(1.25)), "20% less probable");
  assert.equal(probabilityMove(0.56, Math.log(3.3)), "falls from 56% to 17%");
  assert.equal(probabilityMove(0.5, -0.2), "rises from 50% to 61%");
  assert.equal(probabilityMove(0.5, 0), "stays at 50%");
  assert.equal(probabilityChange(20), "over 10,000 times less probable");
  assert.equal(probabilityChange(-20), "over 10,000 times as probable");
});

test("a list of names", () => {
  assert.deepEqual(
    [listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])],
    ["", "a", "a and b", "a, b and c"],
  );
});

test("counts have separators", () => {
  assert.equal(counted(1, "token"), "1 token");
  assert.equal(counted(1114394, "token"), "1,114,394 tokens");
});
