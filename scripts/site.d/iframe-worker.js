// The search of the site runs in a Worker, which a browser does not start for pages opened from files. In its place this
// runs the Worker's script in an empty frame, with messages in both directions.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.give(data);
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      script.onerror = (event) => this.onerror?.(event);
      inside.document.body.append(script);
    }
    give(data) {
      this.onmessage?.(new MessageEvent("message", { data: structuredClone(data) }));
    }
    postMessage(data) {
      if (!this.ready) return void this.waiting.push(data);
      const event = new MessageEvent("message", { data: structuredClone(data) });
      setTimeout(() => this.frame.contentWindow?.dispatchEvent(event));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
