"use strict";
// A control for each choice that the server names. They are made once and changed in place, so that the focus stays.

class Controls {
  constructor(form, onChoice) {
    this.form = form;
    this.onChoice = onChoice;
    this.made = new Map(); // name -> {input, show}
    this.known = new Map(); // name -> the control as the server says it
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** The names that a search keeps. */
  ofQuestion() {
    return new Set([...this.known.values()].filter((c) => c.of_question).map((c) => c.name));
  }

  show(controls) {
    if (this.made.size === 0) this.form.replaceChildren();
    for (const name of this.made.keys())
      if (!controls.some((c) => c.name === name)) this.remove(name);
    for (const control of controls) {
      this.known.set(control.name, control);
      if (!this.made.has(control.name)) this.made.set(control.name, this.make(control));
      this.made.get(control.name).show(control);
    }
  }
  remove(name) {
    this.made.get(name).box.remove();
    this.made.delete(name);
    this.known.delete(name);
  }

  make(control) {
    const id = `control-${control.name}`;
    const box = make("div");
    this.form.append(box);
    const label = make("label", { for: id }, control.label);
    if (control.key) return this.makeText(control, id, box, label);
    return control.ascending ? this.makeRange(control, id, box, label) : this.makeList(control, id, box, label);
  }

  makeText(control, id, box, label) {
    const list = make("datalist", { id: `${id}-list` });
    const input = make("input", { id, type: control.whole_number ? "number" : "text", list: list.id });
    if (control.whole_number) input.setAttribute("min", "1");
    box.append(label, input, list);
    const choose = () => {
      const { key, value } = this.known.get(control.name);
      if (!control.whole_number || input.value !== "")
        this.onChoice(control.name, input.value === value ? [] : [`${key}=${input.value}`]);
    };
    input.addEventListener(control.whole_number ? "input" : "change", choose);
    return {
      box,
      show: (c) => {
        label.textContent = c.label;
        list.replaceChildren(...c.suggestions.map((value) => make("option", { value })));
        if (document.activeElement !== input) input.value = c.value;
      },
    };
  }

  makeRange(control, id, box, label) {
    const output = make("output", { for: id });
    const why = make("p", { class: "why", id: `${id}-why` });
    const input = make("input", { id, type: "range", min: "0", step: "1", "aria-describedby": why.id });
    label.append(": ", output);
    box.append(label, input, why);
    const say = () => {
      const option = this.known.get(control.name).options[Number(input.value)];
      output.textContent = option.text;
      input.setAttribute("aria-valuetext", option.why_not ? `${option.text}: ${option.why_not}` : option.text);
      why.textContent = option.why_not ?? "";
      return option;
    };
    input.addEventListener("input", () => {
      const option = say();
      if (!option.why_not) this.onChoice(control.name, option.set);
    });
    return {
      box,
      show: (c) => {
        input.max = String(c.options.length - 1);
        if (document.activeElement !== input || c.options[Number(input.value)]?.text !== c.value)
          input.value = String(c.options.findIndex((o) => o.text === c.value));
        say();
      },
    };
  }

  makeList(control, id, box, label) {
    const input = make("select", { id });
    box.append(label, input);
    input.addEventListener("change", () => {
      const option = this.known.get(control.name).options.find((o) => o.text === input.value);
      this.onChoice(control.name, option.set);
    });
    return {
      box,
      show: (c) => {
        const groups = new Map();
        for (const o of c.options) {
          const text = o.why_not ? `${o.text}: ${o.why_not}` : o.text;
          const option = make("option", { value: o.text, disabled: Boolean(o.why_not) }, text);
          if (!groups.has(o.group)) groups.set(o.group, []);
          groups.get(o.group).push(option);
        }
        input.replaceChildren(
          ...[...groups].flatMap(([label_, options]) =>
            label_ === null ? options : [make("optgroup", { label: label_ }, ...options)]));
        input.value = c.value;
      },
    };
  }
}
