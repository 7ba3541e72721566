"""Headless Chromium over its DevTools pipe: real keys and clicks, no package beside Python."""
import json
import os
import subprocess
import time


class Browser:
    """One page. `events` has what the browser told of it: requests, mistakes of scripts, its log."""

    def __init__(self, profile):
        # The browser reads its descriptor 3 and writes 4; here they may have any number.
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--hide-scrollbars", f"--user-data-dir={profile}", "--window-size=1400,1000",
                   "--remote-debugging-pipe", "about:blank"]
        shell = f'exec {" ".join(command)} 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(["bash", "-c", shell], pass_fds=(to_read, to_write),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._bytes, self._next, self._session = b"", 0, None
        self.events = []
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.terminate()
        self._process.wait()

    def _message(self):
        while b"\0" not in self._bytes:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("the browser is gone")
            self._bytes += part
        text, self._bytes = self._bytes.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, seconds=60):
        until = time.monotonic() + seconds
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > until:
                raise RuntimeError(f"not in {seconds} s: {expression}")
            time.sleep(0.01)

    def key(self, name, code=None, text=""):
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37}
        key = {"key": name, "code": name, "windowsVirtualKeyCode": code or codes[name]}
        if name == "Enter":
            text = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def tab_to(self, selector, most=200):
        """Moves the focus as a keyboard does; how many steps it took."""
        for step in range(most):
            if self.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return step
            self.key("Tab")
        raise RuntimeError(f"no Tab leads to {selector}")

    def click(self, selector):
        find = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{find}.scrollIntoView({{block: 'center'}})")
        # Where it lies once the scrolled page is drawn.
        x, y = self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {"
            f" const b = {find}.getBoundingClientRect(); done([b.x + b.width / 2, b.y + b.height / 2]); }})))")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def requests(self):
        return [e["params"]["request"] | {"id": e["params"]["requestId"]}
                for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        """Mistakes of scripts, and what the browser's log says: refused by a policy, not found."""
        return [json.dumps(e["params"]) for e in self.events
                if e["method"] == "Runtime.exceptionThrown"
                or e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"
                or e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "warning")]
