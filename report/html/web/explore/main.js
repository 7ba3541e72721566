"use strict";
// A change is answered by few replications at once; when nothing moves any more, by all that the scenario asks for,
// and with the choices and the file that then hold.
(() => {
  const kQuietMs = 200;
  const quick = Number(document.documentElement.dataset.quick);
  const choices = new Choices();
  const controls = new Controls(byId("controls"), (name, words) => {
    choices.choose(name, words);
    front.leave();
    redraw(performance.now());
  });
  const take = (entries) => {
    choices.replace(entries);
    front.leave();
    redraw(performance.now());
  };
  const pins = new Pins(take);
  const front = new Front((overrides) => {
    const names = controls.ofQuestion();
    take([...choices.entries().filter((entry) => names.has(entry.by)),
      ...overrides.map((word) => ({ by: "front", word }))]);
  });

  function draw(forecast, entries, since) {
    const said = showFacts(forecast);
    pins.show(forecast, entries);
    front.mark(forecast);
    byId("limits").textContent = limitSentences(forecast, [...controls.known.values()]).join(" ");
    byId("forecast").classList.remove("stale");
    showErrors(null);
    byId("forecast").dataset.replications = String(forecast.replications);
    // When the browser has painted it: the frame behind the next one begins.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const took = Math.round(performance.now() - since);
      byId("how").textContent = `${forecast.replications} replications, drawn after ${took} ms`;
      document.documentElement.dataset.drawn = String(choices.version);
      document.documentElement.dataset.took = String(took);
    }));
    return said;
  }
  function fail(error) {
    showErrors(error);
    byId("forecast").classList.add("stale");
    document.documentElement.dataset.failed = String(choices.version);
  }

  let busy = false, waiting = null, quiet = 0;
  /** One question at a time; of those that come meanwhile the last. */
  async function redraw(since) {
    clearTimeout(quiet);
    waiting = since;
    if (busy) return;
    busy = true;
    while (waiting !== null) {
      const begun = waiting, entries = choices.entries();
      waiting = null;
      try {
        draw(await ask("/simulate", { set: entries.map((e) => e.word), replications: quick }), entries, begun);
      } catch (error) {
        fail(error);
      }
    }
    busy = false;
    quiet = setTimeout(settle, kQuietMs);
  }

  async function settle() {
    const version = choices.version, entries = choices.entries(), set = entries.map((e) => e.word);
    const current = () => choices.version === version;
    try {
      const begun = performance.now();
      const all = await ask("/simulate", { set });
      if (!current()) return;
      byId("announce").textContent = draw(all, entries, begun);
      document.documentElement.dataset.refined = String(version);
      byId("file").value = await ask("/scenario", { set });
      byId("command").textContent = commandFor(set);
      const found = await ask("/controls", { set });
      if (!current()) return;
      choices.settle();
      byId("name").textContent = found.scenario;
      document.title = `${found.scenario} - reckon explore`;
      search.words = found.search;
      controls.show(found.controls);
      byId("limits").textContent = limitSentences(all, found.controls).join(" ");
      document.documentElement.dataset.settled = String(version);
    } catch (error) {
      if (current()) fail(error);
    }
  }
  function commandFor(set) {
    const quoted = set.map((word) => ` --set '${word.replaceAll("'", "'\\''")}'`).join("");
    return `reckon simulate FILE${quoted}`;
  }

  async function search() {
    byId("search").disabled = true;
    byId("front-note").textContent = "Searching ...";
    try {
      front.show(await ask("/plan", { set: [...choices.wordsOf(controls.ofQuestion()), ...(search.words ?? [])] }));
      document.documentElement.dataset.searched = String(front.points.length);
    } catch (error) {
      byId("front-note").textContent = `No search: ${error.message}`;
      document.documentElement.dataset.searched = "0";
    }
    byId("search").disabled = false;
  }

  byId("pin-a").addEventListener("click", () => pins.pin("A"));
  byId("pin-b").addEventListener("click", () => pins.pin("B"));
  byId("reset").addEventListener("click", () => take([]));
  byId("search").addEventListener("click", search);
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(byId("file").value);
      byId("copied").textContent = "Copied";
    } catch {
      byId("file").select();
      byId("copied").textContent = document.execCommand("copy") ? "Copied" : "Selected: copy it with Ctrl-C";
    }
  });
  byId("save").addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([byId("file").value], { type: "application/yaml" }));
    make("a", { href: url, download: `${byId("name").textContent}.yaml` }).click();
    URL.revokeObjectURL(url);
    byId("copied").textContent = "Saved among your downloads";
  });

  // The search needs the choices' names, and the first forecast comes before it.
  (async () => {
    await redraw(performance.now());
    clearTimeout(quiet);
    await settle();
    await search();
  })();
})();
