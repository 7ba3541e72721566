"""The page of `reckon explore` in a headless browser.

explore_page.py check LINK FOLDER      walks through it by keyboard and mouse; prints what it saw as JSON and leaves
                                       in FOLDER the scenario that was copied and the answer that was drawn
explore_page.py measure LINK FOLDER N  N changes of the number of nodes; prints ms from key to paint
"""
import json
import statistics
import sys
import time

from browser import Browser

FACTS = "document.getElementById('facts').innerText"
DATA = "(document.documentElement?.dataset ?? {})"
NAMED = ("button", "slider", "textbox", "combobox", "spinbutton", "region", "form")


def settled(page):
    """Until nothing moves any more: drawn from all replications, choices and file read."""
    page.wait(f"{DATA}.settled !== undefined")
    before = None
    while True:
        now = page.evaluate(f"JSON.stringify([{DATA}.settled, {DATA}.refined, {DATA}.drawn])")
        versions = json.loads(now)
        if now == before and len(set(versions)) == 1:
            return
        before = now
        time.sleep(0.4)


def open_page(link, folder):
    page = Browser(f"{folder}/profile")
    page.call("Page.navigate", url=link)
    page.wait(f"{DATA}.searched !== undefined", 120)
    settled(page)
    return page


def unnamed(page):
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    return [n["role"]["value"] for n in nodes if not n["ignored"] and n["role"]["value"] in NAMED
            and not n.get("name", {}).get("value")]


def change_nodes(page, key):
    before = page.evaluate(f"{DATA}.drawn")
    page.tab_to("#control-nodes")
    page.key(key)
    page.wait(f"{DATA}.drawn !== '{before}'")
    settled(page)


def check(link, folder):
    page = open_page(link, folder)
    seen = {"title": page.evaluate("document.title"), "facts": page.evaluate(FACTS),
            "controls": page.evaluate("[...document.querySelectorAll('#controls label')].map((l) => l.innerText)"),
            "unnamed": unnamed(page), "points": page.evaluate("document.querySelectorAll('#front button').length")}
    page.tab_to("#pin-a")
    page.key("Enter")
    change_nodes(page, "ArrowRight")
    seen["changed"] = page.evaluate(FACTS)
    seen["nodes"] = page.evaluate("document.getElementById('control-nodes').getAttribute('aria-valuetext')")
    seen["announced"] = page.evaluate("document.getElementById('announce').textContent")
    page.tab_to("#pin-b")
    page.key("Enter")
    seen["compared"] = page.evaluate("document.getElementById('compare').innerText")
    page.click("#front button:last-of-type")
    page.wait("document.querySelector('#front button[aria-pressed=true]') !== null")
    settled(page)
    seen["picked"] = page.evaluate("document.querySelector('#front button[aria-pressed=true]').ariaLabel")
    seen["limits"] = page.evaluate("document.getElementById('limits').innerText")
    seen["from_front"] = page.evaluate(FACTS)
    page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.click("#copy")
    page.wait("document.getElementById('copied').textContent === 'Copied'")
    with open(f"{folder}/copied.yaml", "w", encoding="utf-8") as out:
        out.write(page.evaluate("navigator.clipboard.readText()"))
    drawn = [r for r in page.requests() if r["url"].endswith("/simulate")][-1]
    with open(f"{folder}/drawn.json", "w", encoding="utf-8") as out:
        out.write(page.call("Network.getResponseBody", requestId=drawn["id"])["body"])
    # What is wrong is said, and undone.
    page.evaluate("(() => { const i = document.getElementById('control-batch'); i.value = 1000000;"
                  " i.dispatchEvent(new Event('input')); })()")
    seen["error"] = page.wait("document.getElementById('errors').innerText")
    page.click("#reset")
    page.wait("document.getElementById('errors').innerText === ''")
    settled(page)
    seen["reset"] = page.evaluate(FACTS)
    origin = link.split("/?")[0]
    seen["elsewhere"] = [r["url"] for r in page.requests() if not r["url"].startswith((origin, "data:"))]
    # A scenario that is refused is answered with 422, which the browser's log has.
    seen["complaints"] = [c for c in page.complaints() if "422" not in c]
    page.close()
    print(json.dumps(seen))


def measure(link, folder, changes):
    page = open_page(link, folder)
    page.tab_to("#control-nodes")
    took = []
    for k in range(changes):
        before = page.evaluate(f"{DATA}.drawn")
        page.key("ArrowLeft" if k % 2 else "ArrowRight")
        page.wait(f"{DATA}.drawn !== '{before}'")
        took.append(float(page.evaluate(f"{DATA}.took")))
        settled(page)
    page.close()
    took.sort()
    print(f"{changes} changes, ms from the key to the paint: median {statistics.median(took):.0f}, "
          f"95 % {took[int(0.95 * (len(took) - 1))]:.0f}, most {took[-1]:.0f}")


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3])
    else:
        measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))
