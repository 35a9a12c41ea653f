import { Duplex } from "node:stream"
import type { PGlite } from "@electric-sql/pglite"

const terminate = 0x58
const cancelRequest = 80_877_102

/**
 * A socket to PGlite. The driver writes whole protocol messages and waits for the response to each batch, so a chunk is
 * a batch. A session that ends may leave a transaction open; the next session rolls it back first.
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
