"use strict";
// The server: every answer is what a command prints.

const kToken = new URLSearchParams(location.search).get("token");

/** What is wrong with a question: lines as `--errors json` prints them. */
class Refused extends Error {
  constructor(errors) {
    super(errors.map((e) => e.message).join("; "));
    this.errors = errors;
  }
}

async function ask(path, question) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      headers: { Authorization: `Bearer ${kToken}`, "Content-Type": "application/json" },
      body: JSON.stringify(question),
    });
  } catch {
    throw new Refused([{ message: "reckon does not answer", hint: "start `reckon explore` again and open its link" }]);
  }
  const text = await answer.text();
  if (answer.ok) return answer.headers.get("Content-Type") === "application/json" ? JSON.parse(text) : text;
  throw new Refused(text.trim().split("\n").map((line) => JSON.parse(line)));
}

function showErrors(error) {
  const lines = [];
  for (const { message, hint, file, line } of error?.errors ?? []) {
    const at = file && !file.startsWith("--set") ? `${file}${line ? `:${line}` : ""}: ` : "";
    lines.push(make("p", {}, `${at}${message}`));
    if (hint) lines.push(make("p", { class: "note" }, hint));
  }
  if (error && !error.errors) lines.push(make("p", {}, String(error)));
  byId("errors").replaceChildren(...lines);
}
