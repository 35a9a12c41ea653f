import type { Flow, Sink } from "../../../../src/services/Upstream.ts"

/** A sink that keeps the response. The functions of its options control the flow. */
export interface Collector extends Sink {
  readonly status: number | undefined
  readonly headers: ReadonlyArray<string>
  readonly chunks: ReadonlyArray<Uint8Array>
  readonly body: Buffer
  /** Resumes a paused exchange. */
  readonly drain: () => void
}

export const collector = (
  on: {
    readonly head?: () => Flow
    readonly chunk?: (soFar: number) => Flow
    /** Called when the exchange waits for `drain`. */
    readonly paused?: () => void
  } = {}
): Collector => {
  const chunks: Array<Uint8Array> = []
  let status: number | undefined
  let headers: ReadonlyArray<string> = []
  let resume = () => {}
  return {
    head: (code, fields) => {
      status = code
      headers = fields
      return on.head?.() ?? "continue"
    },
    chunk: (bytes) => {
      chunks.push(bytes)
      return on.chunk?.(chunks.length) ?? "continue"
    },
    onDrain: (drained) => {
      resume = drained
      on.paused?.()
    },
    get status() {
      return status
    },
    get headers() {
      return headers
    },
    chunks,
    get body() {
      return Buffer.concat(chunks)
    },
    drain: () => resume()
  }
}
