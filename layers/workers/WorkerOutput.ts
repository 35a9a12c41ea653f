import type { Worker } from "node:cluster"
import { WholeLines } from "./WholeLines.ts"

/** What all workers print. */
export class WorkerOutput {
  readonly #stdout = new WholeLines(process.stdout)
  readonly #stderr = new WholeLines(process.stderr)
  readonly #announced = new Set<string>()

  /** A process whose start failed for want of file descriptors has no output, though the types say otherwise. */
  add({ process: { stderr, stdout } }: Worker): void {
    if (stdout) this.#stdout.add(stdout)
    if (stderr) this.#stderr.add(stderr)
  }

  /** Prints a line for the operator, unless another worker has announced it, too. */
  announce(line: string): void {
    if (this.#announced.has(line)) return
    this.#announced.add(line)
    process.stdout.write(`${line}\n`)
  }
}
