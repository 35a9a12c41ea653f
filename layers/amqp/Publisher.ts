import type { ConfirmChannel, Message } from "amqplib/callback_api"
import { Effect } from "effect"
import type { Outcome, Publication } from "../../src/services/Broker.ts"
import * as Failure from "./Failure.ts"
import * as Messages from "./Messages.ts"
import { Outbox } from "./Outbox.ts"

export interface Limits {
  /** How many publishes may be unanswered. */
  readonly window: number
  /** Milliseconds, for the turn and the answer together. */
  readonly within: number
}

type Publishable = Omit<Publication, "purpose">
type Answer = (outcome: Effect.Effect<Outcome>) => void

interface Answered {
  readonly deliveryTag: number
  /** With all before it. */
  readonly multiple: boolean
}

class Publishing {
  readonly publication: Publishable
  readonly expiresAt: number
  returned: string | undefined
  #answer: Answer | undefined

  constructor(publication: Publishable, expiresAt: number, answer: Answer) {
    this.publication = publication
    this.expiresAt = expiresAt
    this.#answer = answer
  }

  get wanted(): boolean {
    return this.#answer !== undefined
  }

  answer(outcome: Effect.Effect<Outcome>): void {
    this.#answer?.(outcome)
    this.#answer = undefined
  }

  /** Nobody listens any more. */
  leave(): void {
    this.#answer = undefined
  }
}

/**
 * A channel on which the broker refuses a publish is replaced, at the earliest so long after it was opened. RabbitMQ
 * 3.10 needs it: a channel that first publishes to a quorum queue after its leader has died and before it has another
 * asks the dead node for its version, each time, and refuses everything until that very node is back.
 */
const renewAfterMs = 500

/** For the answers that the channel still owes; if they do not come, it stays. */
const renewWithinMs = 250

/**
 * The publishes of one purpose: a window of unanswered ones on one confirm channel, and a line of those who wait for
 * their turn. Plain callbacks, as this is the hot path; what is in the line outlives the channel, and the connection.
 *
 * What is in the window when the channel ends may be stored. One thing is known: the broker handles a channel in order,
 * and nothing behind what it closed the channel for. So behind such a publish the rest goes back to the line, those to
 * the same exchange share its fate, and the outcome of those in front of it is unknown.
 */
export class Publisher {
  readonly #limits: Limits
  /** To be answered by `attach`. */
  readonly #open: () => void
  /** Takes a channel that is to be replaced; none where there is only one. */
  readonly #discard: ((channel: ConfirmChannel) => void) | undefined
  #waiting: Array<Publishing> = []
  #next = 0
  /** In the order of their delivery tags, which are the channel's. */
  readonly #sent = new Map<number, Publishing>()
  #channel: ConfirmChannel | undefined
  #outbox: Outbox | undefined
  #openedAt = 0
  /** While the channel is about to be replaced: nothing more is sent on it. */
  #renewal: NodeJS.Timeout | undefined
  #opening = false
  #blocked: string | undefined
  #closed: string | undefined
  #onIdle: (() => void) | undefined
  #clock: NodeJS.Timeout | undefined

  constructor(limits: Limits, open: () => void, discard?: (channel: ConfirmChannel) => void) {
    this.#limits = limits
    this.#open = open
    this.#discard = discard
  }

  /** The answer comes once, unless the caller leaves by calling what is returned. */
  publish(publication: Publishable, answer: Answer): () => void {
    const problem = Messages.problemOf(publication)
    if (problem !== undefined) return refuse(answer, "invalid", problem)
    if (this.#closed !== undefined) return refuse(answer, "closed", this.#closed)
    const { within } = this.#limits
    const publishing = new Publishing(publication, performance.now() + within, answer)
    this.#clock ??= setTimeout(expire, within, this)
    if (this.#free && this.#next === this.#waiting.length) this.#send(publishing)
    else {
      this.#waiting.push(publishing)
      this.wake()
    }
    return () => publishing.leave()
  }

  attach(channel: ConfirmChannel): void {
    this.#opening = false
    this.#channel = channel
    this.#outbox = new Outbox(channel)
    this.#openedAt = performance.now()
    channel.on("return", (message) => this.#returned(message))
    // In place of amqplib's own, which look for callbacks of publishes that it knows nothing of.
    channel.removeAllListeners("ack").on("ack", (ack) => this.#answered(ack, true))
    channel.removeAllListeners("nack").on("nack", (nack) => this.#answered(nack, false))
    this.#pump()
  }

  /** Opens a channel if somebody waits for one. */
  wake(): void {
    if (this.#channel !== undefined || this.#opening || this.#next === this.#waiting.length) return
    this.#opening = true
    this.#open()
  }

  /** No channel came of `open`. */
  unopened(): void {
    this.#opening = false
  }

  block(reason: string | undefined): void {
    this.#blocked = reason
    if (reason === undefined) this.#pump()
  }

  detach(why: Error): void {
    this.#channel = undefined
    this.#endRenewal()
    const sent = [...this.#sent.values()]
    this.#sent.clear()
    const culprit = Failure.ofPublish(why) ? culpritOf(sent, why) : -1
    const words = Failure.wordsOf(why)
    const again: Array<Publishing> = []
    sent.forEach((publishing, index) => {
      if (culprit < 0 || index < culprit) publishing.answer(unknown("lost", words))
      else if (index === culprit || sharesFate(publishing, sent[culprit], why))
        publishing.answer(refused(refusalOf(why), words))
      else if (publishing.wanted) again.push(publishing)
    })
    this.#waiting = again.concat(this.#waiting.slice(this.#next))
    this.#next = 0
    this.#rest()
    this.wake()
  }

  /** Nothing is taken any more, and nobody in the line gets a turn. */
  close(detail: string): void {
    this.#closed = detail
    for (const publishing of this.#waiting.slice(this.#next)) publishing.answer(refused("closed", detail))
    this.#waiting = []
    this.#next = 0
    this.#rest()
  }

  /** Succeeds when the last answer has come. */
  get idle(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.#sent.size === 0) resume(Effect.void)
      else this.#onIdle = () => resume(Effect.void)
    })
  }

  #rest(): void {
    if (this.#closed === undefined || this.#sent.size > 0) return
    clearTimeout(this.#clock)
    this.#endRenewal()
    this.#onIdle?.()
  }

  get #free(): boolean {
    if (this.#channel === undefined || this.#renewal !== undefined) return false
    return this.#blocked === undefined && this.#sent.size < this.#limits.window
  }

  #pump(): void {
    while (this.#free && this.#next < this.#waiting.length) {
      const publishing = this.#waiting[this.#next++]!
      if (publishing.wanted) this.#send(publishing)
    }
    if (this.#next === this.#waiting.length || this.#next > 1_024) {
      this.#waiting.splice(0, this.#next)
      this.#next = 0
    }
  }

  #send(publishing: Publishing): void {
    try {
      const tag = this.#outbox!.send(publishing.publication)
      if (tag === undefined) {
        this.#channel = undefined
        this.#waiting.splice(this.#next, 0, publishing)
      } else this.#sent.set(tag, publishing)
    } catch (error) {
      // Its caller changed it while it waited: nothing has left.
      publishing.answer(refused("invalid", Failure.wordsOf(error)))
    }
  }

  #answered({ deliveryTag, multiple }: Answered, stored: boolean): void {
    if (multiple) {
      for (const tag of this.#sent.keys()) {
        if (tag > deliveryTag) break
        this.#settle(tag, stored)
      }
    } else this.#settle(deliveryTag, stored)
    if (!stored) this.#distrust()
    if (this.#renewal !== undefined && this.#sent.size === 0) this.#renew()
    this.#rest()
    if (this.#next < this.#waiting.length) this.#pump()
  }

  #settle(tag: number, stored: boolean): void {
    const publishing = this.#sent.get(tag)
    if (publishing === undefined) return
    this.#sent.delete(tag)
    if (!stored) publishing.answer(nacked)
    else if (publishing.returned !== undefined) publishing.answer(returned(publishing.returned))
    else publishing.answer(confirmed)
  }

  #distrust(): void {
    if (this.#discard === undefined || this.#channel === undefined || this.#renewal !== undefined) return
    if (performance.now() - this.#openedAt > renewAfterMs) this.#renewal = setTimeout(stay, renewWithinMs, this)
  }

  #renew(): void {
    const channel = this.#channel
    this.#channel = undefined
    this.#endRenewal()
    if (channel !== undefined) this.#discard?.(channel)
    this.wake()
  }

  #endRenewal(): void {
    clearTimeout(this.#renewal)
    this.#renewal = undefined
  }

  /** The channel still owes answers, and goes on. */
  stay(): void {
    this.#endRenewal()
    this.#openedAt = performance.now()
    this.#pump()
  }

  /**
   * A return says nothing of which publish it answers but the message itself, and comes at some time before the
   * acknowledgement, which may be one for many. Returns come in the order of the publishes; twins are told apart by no
   * one. An interceptor of the broker may have changed the headers: then the first to this place it is.
   */
  #returned(message: Message): void {
    let likely: Publishing | undefined
    let found: Publishing | undefined
    for (const publishing of this.#sent.values()) {
      if (publishing.returned !== undefined) continue
      const { exchange, routingKey } = publishing.publication
      if (exchange !== message.fields.exchange || routingKey !== message.fields.routingKey) continue
      likely ??= publishing
      if (!Messages.sameMessage(publishing.publication, message)) continue
      found = publishing
      break
    }
    const publishing = found ?? likely
    if (publishing !== undefined) publishing.returned = wordsOfReturn(message)
  }

  expire(): void {
    this.#clock = undefined
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    for (const publishing of this.#sent.values()) {
      if (publishing.expiresAt <= now) publishing.answer(late(this.#limits.within))
      else if (publishing.wanted) {
        next = publishing.expiresAt
        break
      }
    }
    while (this.#next < this.#waiting.length) {
      const publishing = this.#waiting[this.#next]!
      if (publishing.expiresAt > now) {
        next = Math.min(next, publishing.expiresAt)
        break
      }
      this.#next += 1
      publishing.answer(this.#turnless())
    }
    if (next < Number.POSITIVE_INFINITY) this.#clock = setTimeout(expire, Math.ceil(next - now), this)
  }

  #turnless(): Effect.Effect<Outcome> {
    if (this.#blocked !== undefined) return refused("blocked", this.#blocked)
    const why = this.#channel === undefined ? "not connected" : "the window was full"
    return refused("unreachable", `It was not sent within ${this.#limits.within} ms: ${why}`)
  }
}

const expire = (publisher: Publisher): void => publisher.expire()

const stay = (publisher: Publisher): void => publisher.stay()

const confirmed: Effect.Effect<Outcome> = Effect.succeed({ _tag: "Confirmed" })

const returned = (detail: string): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Returned", detail })

const refused = (
  reason: Extract<Outcome, { readonly _tag: "Refused" }>["reason"],
  detail: string
): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Refused", reason, detail })

const nacked = refused("nacked", "The broker could not store it: a full queue, or a failing one")

const unknown = (reason: "lost" | "deadline", detail: string): Effect.Effect<Outcome> =>
  Effect.succeed({ _tag: "Unknown", reason, detail })

const late = (within: number) => unknown("deadline", `RabbitMQ did not answer within ${within} ms`)

const refuse = (answer: Answer, reason: "invalid" | "closed", detail: string): (() => void) => {
  answer(refused(reason, detail))
  return () => {}
}

const wordsOfReturn = (message: Message): string => {
  const { exchange, routingKey } = message.fields
  const text: unknown = "replyText" in message.fields ? message.fields.replyText : "NO_ROUTE"
  return `${text}: no queue of exchange "${exchange}" takes the routing key "${routingKey}"`
}

/** Which of them the broker means; -1: it does not say. */
const culpritOf = (sent: ReadonlyArray<Publishing>, why: Error): number => {
  const words = Failure.wordsOf(why)
  const size = / message size (\d+) /.exec(words)?.[1]
  return sent.findIndex(({ publication: { content, exchange, properties } }) => {
    if (words.includes(`exchange '${exchange}'`)) return true
    if (size !== undefined) return content.length === Number(size)
    return properties.userId !== undefined && words.includes(`user_id property set to '${properties.userId}'`)
  })
}

const sharesFate = (publishing: Publishing, culprit: Publishing | undefined, why: Error): boolean =>
  Failure.wordsOf(why).includes("exchange '") && publishing.publication.exchange === culprit?.publication.exchange

const refusalOf = (why: Error): "no_exchange" | "denied" | "invalid" => {
  const code = Failure.codeOf(why)
  if (code === 404) return "no_exchange"
  return code === 403 ? "denied" : "invalid"
}
