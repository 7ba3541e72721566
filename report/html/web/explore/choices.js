"use strict";
// What was chosen, as words of --set. The values of the controls are counted from `settled`; what was chosen since
// stands behind it, one entry a control.

const keyOf = (word) => word.slice(0, word.indexOf("="));

class Choices {
  settled = []; // {by, word}
  since = new Map(); // control -> [{by, word}]
  version = 0;

  entries() {
    const kept = [];
    for (const entry of [...this.settled, ...[...this.since.values()].flat()]) {
      const key = keyOf(entry.word);
      for (let k = kept.length - 1; k >= 0; --k) {
        const other = keyOf(kept[k].word);
        if (other === key || other.startsWith(`${key}.`)) kept.splice(k, 1);
      }
      kept.push(entry);
    }
    return kept;
  }
  words() {
    return this.entries().map((entry) => entry.word);
  }
  /** Those that a search keeps: they are the question's, not a plan's. */
  wordsOf(names) {
    return this.entries().filter((entry) => names.has(entry.by)).map((entry) => entry.word);
  }

  choose(name, words) {
    this.since.delete(name); // what was chosen last stands last
    if (words.length > 0) this.since.set(name, words.map((word) => ({ by: name, word })));
    ++this.version;
  }
  replace(entries) {
    this.settled = entries;
    this.since.clear();
    ++this.version;
  }
  settle() {
    this.settled = this.entries();
    this.since.clear();
  }
}
