export class TailBuffer {
  readonly #ring: Buffer
  #at = 0
  #full = false

  constructor(most: number) {
    this.#ring = Buffer.allocUnsafeSlow(most)
  }

  add(chunk: Buffer): void {
    const most = this.#ring.length
    const kept = chunk.subarray(Math.max(0, chunk.length - most))
    const copied = kept.copy(this.#ring, this.#at)
    kept.copy(this.#ring, 0, copied)
    this.#full ||= this.#at + kept.length >= most
    this.#at = (this.#at + kept.length) % most
  }

  toBuffer(): Buffer {
    const newest = this.#ring.subarray(0, this.#at)
    return this.#full ? Buffer.concat([this.#ring.subarray(this.#at), newest]) : newest
  }
}
