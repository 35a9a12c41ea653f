import { Duplex } from "node:stream"
import type { PGlite } from "@electric-sql/pglite"

const terminate = 0x58
const cancelRequest = 80_877_102

/**
 * Connects the driver to PGlite without a network. The driver writes whole messages and waits for each response, so
 * every chunk can be executed alone. A new connection rolls back a transaction that was left open.
 */
export const connect = (postgres: PGlite): Duplex => {
  let started = false
  const exchange = async (chunk: Buffer): Promise<Uint8Array | null> => {
    if (!started) {
      started = true
      if (chunk.readUInt32BE(4) === cancelRequest) return null
      await postgres.exec("ROLLBACK")
    }
    return chunk[0] === terminate ? null : postgres.execProtocolRaw(chunk)
  }
  return new Duplex({
    read: () => {},
    write(chunk: Buffer, _encoding, done) {
      exchange(chunk).then((response) => {
        if (response === null) this.push(null)
        else if (response.length > 0) this.push(response)
        done()
      }, done)
    }
  })
}
