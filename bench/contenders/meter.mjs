// What the TypeScript contender measures itself with; `meter.py` is the same for Python.

export class Meter {
  laps = {};
  more = {};
  #running = null;

  // End the lap that runs, and begin another unless there is no name for it.
  lap(name) {
    const wall = performance.now();
    if (this.#running) {
      const used = process.cpuUsage(this.#running.cpu);
      this.laps[this.#running.name] = {
        cpu: (used.user + used.system) / 1e6,
        wall: (wall - this.#running.wall) / 1e3,
      };
    }
    this.#running = name ? { name, cpu: process.cpuUsage(), wall: performance.now() } : null;
  }

  // Print the one line the benchmark reads. On stderr: stdout belongs to the protocol.
  report() {
    process.stderr.write(JSON.stringify({ laps: this.laps, more: this.more }) + "\n");
  }
}
