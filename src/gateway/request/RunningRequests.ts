/** Counts the running requests of each key in this process. */
export class RunningRequests {
  readonly #running = new Map<string, number>()

  begin(keyId: string): number {
    const running = (this.#running.get(keyId) ?? 0) + 1
    this.#running.set(keyId, running)
    return running
  }

  end(keyId: string): void {
    const left = (this.#running.get(keyId) ?? 0) - 1
    if (left > 0) this.#running.set(keyId, left)
    else this.#running.delete(keyId)
  }
}
