import { EventEmitter } from "node:events"

export const frameMax = 4_096

/** What of amqplib's channels a publisher sees: their events, and what they write. */
export const open = () => {
  const writes: Array<Buffer> = []
  const connection = new (class extends Opened {
    frameMax = frameMax
    stream = { writableLength: 0 }
    sendBytes(bytes: Buffer) {
      writes.push(bytes)
    }
  })()
  const channel = new (class extends OpenedChannel {
    ch = 1
    connection = connection
  })()
  return { connection, channel, writes }
}

class Opened {
  sendMessage() {}
}

class OpenedChannel extends EventEmitter {
  sendMessage() {}
}
