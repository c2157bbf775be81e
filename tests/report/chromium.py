"""A headless Chromium, driven over a pipe by its own protocol: no driver, no package, no port."""

import base64
import json
import os
import re
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class Page:
    """One tab. `problems` gathers what the console and the network complain about, `requests` every address."""

    def __init__(self, executable, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def arrange():  # Chromium listens on descriptor 3 and answers on 4
            for number, end in ((13, to_read), (14, to_write)):
                os.dup2(end, number)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self._process = subprocess.Popen(
            [executable, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-pipe", "--disable-background-networking", "--force-device-scale-factor=1",
             f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=arrange, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self._session, self._events = b"", 0, None, []
        self.problems, self.requests = [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self):
        self._process.terminate()
        self._process.wait(10)
        os.close(self._read)
        os.close(self._write)

    def send(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda m: m.get("id") == self._number)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _wait(self, wanted, seconds=30):
        end = time.monotonic() + seconds
        while True:
            while b"\0" in self._buffer:
                line, self._buffer = self._buffer.split(b"\0", 1)
                message = json.loads(line)
                self._note(message)
                if wanted(message):
                    return message
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            part = os.read(self._read, 2**16)
            assert part, "Chromium ended"
            self._buffer += part

    def _note(self, message):
        kind, content = message.get("method"), message.get("params")
        if kind == "Runtime.exceptionThrown" or (
            kind == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert")
        ):
            self.problems.append(content)
        if kind == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
            self.problems.append(content["entry"])
        if kind == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])

    def open(self, path, width=1280, height=900, dark=False):
        self.problems.clear()
        self.requests.clear()
        mobile = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        media = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in media.items()]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.send("Page.navigate", url=path.as_uri())
        self._wait(lambda m: m.get("method") == "Page.loadEventFired")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key):
        codes = {"Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "ArrowUp": 38, "ArrowDown": 40, "Enter": 13}
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0), **text
            )

    def move(self, x, y):
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, start, end):
        """Press the left button, move, and release."""
        middle = tuple((a + b) / 2 for a, b in zip(start, end, strict=True))
        steps = [("mousePressed", start), ("mouseMoved", middle), ("mouseMoved", end), ("mouseReleased", end)]
        self.move(*start)
        for kind, (x, y) in steps:
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def downloaded(self, folder, seconds=10):
        """The text of the only file in a folder, as soon as it is complete."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            files = [file for file in folder.iterdir() if file.suffix != ".crdownload"]
            if files and files[0].stat().st_size:
                return files[0].read_text()
            self.run("new Promise(done => setTimeout(done, 50))")
        raise AssertionError("no file was downloaded")

    def print(self):
        """Sizes in bytes of the drawing commands of each printed page."""
        document = base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])
        objects = dict(re.findall(rb"\n(\d+) 0 obj\s(.*?)\sendobj", document, re.DOTALL))
        pages = [content for content in objects.values() if re.search(rb"/Type\s*/Page\b", content)]
        numbers = [re.search(rb"/Contents (\d+) 0 R", content)[1] for content in pages]
        return [len(objects[number]) for number in numbers]

    def picture(self, whole=True):
        """The page as PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {**size, "scale": 1}, "captureBeyondViewport": True} if whole else {}
        return base64.b64decode(self.send("Page.captureScreenshot", **clip)["data"])


def browser():
    """Path of Chromium, or None."""
    return os.environ.get("KDMAPS_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
