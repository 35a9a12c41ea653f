import type { Channel, Message } from "amqplib/callback_api"
import type { Settled, Settlement } from "../../src/services/Broker.ts"

/** In the order of their tags, each delivery is: not settled; acknowledged here, and the broker not told; done. */
type DeliveryState = typeof open | typeof ackPending | typeof done
const open = 0
const ackPending = 1
const done = 2

const maxBatch = 50
const maxDelayMs = 5

/**
 * The deliveries of one channel. Acknowledgements are sent together, after 5 ms or when 50 (or half of what the broker
 * lets be unsettled) have come together: one for the whole prefix of finished tags, and each by itself behind a tag that
 * is not settled yet.
 */
export class Settlements {
  readonly #channel: Channel
  readonly #enough: number
  readonly #states: Array<DeliveryState> = []
  readonly #offsets: Array<number> = []
  #head = 0
  /** The tag of `#states[0]`. */
  #base = 1
  #gathered: Array<number> = []
  #timer: NodeJS.Timeout | undefined
  #void = false
  #resumeAt: number | undefined

  /** `prefetch`: how many the broker lets be unsettled; beyond, it waits for acknowledgements. */
  constructor(channel: Channel, prefetch: number) {
    this.#channel = channel
    this.#enough = Math.min(maxBatch, Math.ceil(prefetch / 2))
  }

  /** Tags of a channel come in order and without gaps. `offset`: where it stands in its stream. */
  track(offset = -1): void {
    this.#states.push(open)
    this.#offsets.push(offset)
  }

  settle(tag: number, how: Settlement): Settled {
    const index = tag - this.#base
    if (index < this.#head || this.#states[index] !== open) return "settled"
    if (this.#void) return "stale"
    if (how === "ack") {
      this.#states[index] = ackPending
      this.#gathered.push(tag)
      if (this.#gathered.length >= this.#enough) this.flush()
      else this.#timer ??= setTimeout(() => this.flush(), maxDelayMs)
    } else {
      this.#states[index] = done
      const message = messageWithTag(tag)
      // From RabbitMQ 4.3 on, only a rejection counts as a failed delivery: what is given back unharmed is a nack.
      this.#send(() =>
        how === "requeue" ? this.#channel.nack(message, false, true) : this.#channel.reject(message, false)
      )
      if (index === this.#head) this.#advance()
    }
    return "requested"
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#gathered.length === 0 || this.#void) return
    const firstUnfinished = this.#advance()
    for (const tag of this.#gathered) {
      if (tag < firstUnfinished) continue
      this.#states[tag - this.#base] = done
      this.#send(() => this.#channel.ack(messageWithTag(tag), false))
    }
    this.#gathered = []
  }

  /** The channel is gone: what was not settled by now never will be. */
  invalidate(): void {
    this.#void = true
    clearTimeout(this.#timer)
  }

  /** Of a stream: the offset behind everything that is settled without a gap. None: nothing was delivered. */
  get resumeAt(): number | undefined {
    let index = this.#head
    while (index < this.#states.length && this.#states[index] !== open) index += 1
    const next = this.#offsets[index]
    if (next !== undefined) return next
    const last = this.#offsets[index - 1]
    return last === undefined ? this.#resumeAt : last + 1
  }

  /** Acknowledges the finished prefix, and says which tag is the first behind it. */
  #advance(): number {
    let index = this.#head
    let last = -1
    let count = 0
    while (index < this.#states.length && this.#states[index] !== open) {
      if (this.#states[index] === ackPending) {
        this.#states[index] = done
        last = index
        count += 1
      }
      index += 1
    }
    if (last >= 0) {
      // Up to the last that the broker waits for: it knows no tag that is settled already, and would close the channel.
      const tag = this.#base + last
      this.#send(() => this.#channel.ack(messageWithTag(tag), count > 1))
    }
    if (index > this.#head) this.#resumeAt = (this.#offsets[index - 1] ?? -1) + 1
    this.#head = index
    this.#compact()
    return this.#base + this.#head
  }

  /** Now and then, as cutting off the front moves all the rest. */
  #compact(): void {
    if (this.#head < 1_024 && this.#head < this.#states.length) return
    this.#states.splice(0, this.#head)
    this.#offsets.splice(0, this.#head)
    this.#base += this.#head
    this.#head = 0
  }

  #send(request: () => void): void {
    try {
      request()
    } catch {
      // The channel has begun to close; its end is on the way.
      this.invalidate()
    }
  }
}

/** amqplib wants a whole message, and looks at its tag alone. */
const token: Message = {
  content: Buffer.alloc(0),
  fields: { deliveryTag: 0, redelivered: false, exchange: "", routingKey: "" },
  properties: {
    contentType: undefined,
    contentEncoding: undefined,
    headers: undefined,
    deliveryMode: undefined,
    priority: undefined,
    correlationId: undefined,
    replyTo: undefined,
    expiration: undefined,
    messageId: undefined,
    timestamp: undefined,
    type: undefined,
    userId: undefined,
    appId: undefined,
    clusterId: undefined
  }
}

const messageWithTag = (tag: number): Message => {
  token.fields.deliveryTag = tag
  return token
}
