export class TailBuffer {
  readonly #ring: Buffer
  #position = 0
  #full = false

  constructor(capacity: number) {
    this.#ring = Buffer.allocUnsafeSlow(capacity)
  }

  add(chunk: Buffer): void {
    const capacity = this.#ring.length
    const tail = chunk.subarray(Math.max(0, chunk.length - capacity))
    const copied = tail.copy(this.#ring, this.#position)
    tail.copy(this.#ring, 0, copied)
    this.#full ||= this.#position + tail.length >= capacity
    this.#position = (this.#position + tail.length) % capacity
  }

  toBuffer(): Buffer {
    const newest = this.#ring.subarray(0, this.#position)
    return this.#full ? Buffer.concat([this.#ring.subarray(this.#position), newest]) : newest
  }
}
