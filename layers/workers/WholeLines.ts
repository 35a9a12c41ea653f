import type { Readable, Writable } from "node:stream"

const newline = 0x0a
/** A longer line is passed on in parts. */
const maxLineBytes = 1_048_576
const noBytes = Buffer.alloc(0)

/**
 * Passes on what several processes write, line by line. If the processes wrote to one pipe themselves, it would mix parts
 * of their lines. While the reader of `output` is slow, the processes have to wait. Without a reader, lines are lost.
 */
export class WholeLines {
  readonly #output: Writable
  readonly #paused = new Set<Readable>()

  constructor(output: Writable) {
    this.#output = output
    output.on("drain", () => this.#resume())
    // The reader of the output has gone. No `drain` follows, and a process that had to wait would wait forever.
    output.on("error", () => this.#resume())
  }

  add(input: Readable): void {
    let rest: Buffer = noBytes
    input.on("data", (bytes: Buffer) => {
      const end = bytes.lastIndexOf(newline) + 1
      const isTooLong = rest.length + bytes.length - end > maxLineBytes
      if (end === 0 && !isTooLong) {
        rest = Buffer.concat([rest, bytes])
        return
      }
      const lines = isTooLong ? bytes : bytes.subarray(0, end)
      this.#write(rest.length === 0 ? lines : Buffer.concat([rest, lines]), input)
      rest = isTooLong ? noBytes : Buffer.from(bytes.subarray(end))
    })
    input.on("end", () => {
      if (rest.length > 0) this.#write(Buffer.concat([rest, Buffer.of(newline)]), input)
    })
    input.on("error", () => {})
  }

  #write(lines: Buffer, input: Readable): void {
    if (this.#output.destroyed || this.#output.write(lines)) return
    input.pause()
    this.#paused.add(input)
  }

  #resume(): void {
    for (const input of this.#paused) input.resume()
    this.#paused.clear()
  }
}
