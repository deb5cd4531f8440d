import assert from "node:assert/strict";
import { test } from "node:test";
import { LatestLoader, LatestRequest } from "../../web/js/lib/latest.mjs";

/** A loader whose answers come when the test says so; `asked` are its open requests, by place. */
function makeLoader() {
  const [asked, shown, reported] = [new Map(), [], []];
  const loader = new LatestLoader({
    load: (source, place) =>
      new Promise((resolve, reject) => asked.set(place, { source, resolve: (...values) => resolve(values), reject })),
    show: (value) => shown.push(value),
    report: (error) => reported.push(error.message),
  });
  return { loader, asked, shown, reported };
}

/** Everything that can happen without time has happened: a few timers one after the other, on a busy machine too. */
async function settled() {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
}

test("one request at a time, and only the newest place is shown", async () => {
  const { loader, asked, shown } = makeLoader();
  loader.want("run", 1, 0);
  await settled();
  loader.want("run", 2, 0);
  loader.want("run", 3, 0);
  await settled();
  assert.deepEqual([...asked.keys()], [1]);
  asked.get(1).resolve("one");
  await settled();
  assert.deepEqual([...asked.keys()], [1, 3]);
  asked.get(3).resolve("three");
  await settled();
  assert.deepEqual(shown, ["three"]);
});

test("an answer that was kept is shown at once, but not for another run", async () => {
  const { loader, asked, shown } = makeLoader();
  loader.want("run", 1, 0);
  await settled();
  asked.get(1).resolve("one");
  await settled();
  loader.want("run", null, 0);
  loader.want("run", 1, 0);
  assert.deepEqual(shown, ["one", "one"]);
  loader.want("other", 1, 0);
  assert.equal(shown.length, 2);
  await settled();
  assert.equal(asked.get(1).source, "other");
});

test("a failure is reported where it is still wanted, and the next place is loaded", async () => {
  const { loader, asked, shown, reported } = makeLoader();
  loader.want("run", 1, 0);
  await settled();
  loader.want("run", 2, 0);
  asked.get(1).reject(new Error("first"));
  await settled();
  assert.deepEqual(reported, []);
  asked.get(2).reject(new Error("second"));
  await settled();
  assert.deepEqual(reported, ["second"]);
  loader.want("run", 3, 0);
  await settled();
  asked.get(3).resolve("three");
  await settled();
  assert.deepEqual(shown, ["three"]);
});

test("what will be wanted soon is loaded ahead, several places at a time", async () => {
  const { loader, asked, shown } = makeLoader();
  loader.want("run", 1, 0, 4);
  await settled();
  asked.get(1).resolve("one", "two");
  await settled();
  assert.deepEqual([...asked.keys()], [1, 3]);
  loader.want("run", 2, 0, 4);
  assert.deepEqual([shown, loader.has("run", 2), loader.has("run", 3)], [["one", "two"], true, false]);
  loader.want("run", 4, 0, 4);
  asked.get(3).resolve("three", "four");
  await settled();
  assert.deepEqual(shown, ["one", "two", "four"]);
});

test("a pause ends when something is wanted at once", async () => {
  const { loader, asked } = makeLoader();
  loader.want("run", 1, 500);
  await settled();
  assert.equal(asked.size, 0);
  loader.want("run", 2, 0);
  await settled();
  assert.deepEqual([...asked.keys()], [2]);
  asked.get(2).resolve("two");
  await settled();
});

test("what could not be loaded ahead is requested again when it is wanted", async () => {
  const { loader, asked, shown, reported } = makeLoader();
  loader.want("run", 1, 0, 2);
  await settled();
  asked.get(1).resolve("one");
  await settled();
  asked.get(2).reject(new Error("not yet"));
  await settled();
  assert.deepEqual(reported, []);
  loader.want("run", 2, 0);
  await settled();
  asked.get(2).resolve("two");
  await settled();
  assert.deepEqual(shown, ["one", "two"]);
});

test("a newer request aborts the one before, whose answer is null", async () => {
  const request = new LatestRequest();
  const signals = [];
  const first = request.send((signal) => new Promise((resolve) => signals.push([signal, resolve])));
  const second = request.send(async () => "new");
  assert.equal(signals[0][0].aborted, true);
  signals[0][1]("old");
  assert.deepEqual([await first, await second], [null, "new"]);
});

test("a request that fails throws, unless a newer one was made", async () => {
  const request = new LatestRequest();
  await assert.rejects(
    request.send(() => Promise.reject(new Error("no"))),
    /no/,
  );
  const old = request.send(async (signal) => {
    await settled();
    signal.throwIfAborted();
  });
  const newer = request.send(async () => 2);
  assert.deepEqual([await old, await newer], [null, 2]);
});
