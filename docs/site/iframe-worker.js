"use strict";
// From a folder (file://), browsers refuse to start a worker. This one runs its script in a hidden frame instead, which is
// enough for the search of the site: messages, and importScripts.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = this.inside = frame.contentWindow;
      const base = new URL(url, location);
      const load = (address) => new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        Object.assign(script, {src: new URL(address, base), onload: done, onerror: failed});
        inside.document.head.append(script);
      });
      inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => load(next)), Promise.resolve());
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", {data});
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      this.ready = load(base);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", {data})));
    }
    terminate() {
      this.inside.frameElement?.remove();
    }
  };
}
