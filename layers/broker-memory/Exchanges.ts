import type { Binding, Exchange } from "../../src/services/Broker.ts"
import { describeResource, refuse, refuseMissing } from "./queues/ChannelException.ts"
import { describeDifference } from "./queues/Fields.ts"
import type { Message } from "./queues/Message.ts"
import { checkHeadersBinding, matches } from "./Routing.ts"

interface DeclaredExchange {
  readonly exchange: Exchange
  readonly bindings: Map<string, Binding>
}

const predeclared: ReadonlyArray<Exchange> = [
  { name: "amq.direct", kind: "direct" },
  { name: "amq.fanout", kind: "fanout" },
  { name: "amq.topic", kind: "topic" },
  { name: "amq.headers", kind: "headers" },
  { name: "amq.match", kind: "headers" }
]

/** Identifies a binding within its exchange. */
export const bindingId = ({ arguments: fields, queue, routingKey }: Binding): string =>
  JSON.stringify([queue, routingKey, Object.entries(fields ?? {}).map(String)])

const withoutBindings = (exchange: Exchange): DeclaredExchange => ({ exchange, bindings: new Map() })

const isDurable = (exchange: Exchange): boolean => exchange.durable ?? true

const alternate = "alternate-exchange"

const refuseDefaultExchange = (): never => refuse(403, "operation not permitted on the default exchange")

/** Routes messages to queues. The default exchange, with the empty name, routes by queue name and is not stored. */
export class Exchanges {
  readonly #exchanges = new Map(predeclared.map((exchange) => [exchange.name, withoutBindings(exchange)]))

  has(name: string): boolean {
    return name === "" || this.#exchanges.has(name)
  }

  /** Returns whether the exchange is new. */
  declare(exchange: Exchange): boolean {
    const { name } = exchange
    const differs = this.difference(exchange)
    if (differs !== undefined) refuse(406, differs)
    if (this.#exchanges.has(name)) return false
    if (name.startsWith("amq.")) refuse(403, `exchange name '${name}' contains reserved prefix 'amq.*'`)
    this.#exchanges.set(name, withoutBindings(exchange))
    return true
  }

  isDurable(name: string): boolean {
    const found = this.#exchanges.get(name)
    return found !== undefined && isDurable(found.exchange)
  }

  /** Returns how a declaration differs from an existing exchange, or `undefined` if it does not. */
  difference(wanted: Exchange): string | undefined {
    if (wanted.name === "") return refuseDefaultExchange()
    const current = this.#exchanges.get(wanted.name)?.exchange
    if (current === undefined) return undefined
    const compared = [
      ["type", describeDifference(wanted.kind, current.kind)],
      ["durable", describeDifference(isDurable(wanted), isDurable(current))],
      [alternate, describeDifference(wanted.arguments?.[alternate], current.arguments?.[alternate])]
    ] as const
    const [name, differs] = compared.find(([, differs]) => differs !== undefined) ?? []
    return differs === undefined
      ? undefined
      : `inequivalent arg '${name}' for ${describeResource("exchange", wanted.name)}: ${differs}`
  }

  delete(name: string): void {
    if (name === "") refuseDefaultExchange()
    if (name.startsWith("amq.")) refuse(403, `deletion of system ${describeResource("exchange", name)} not allowed`)
    this.#exchanges.delete(name)
  }

  /** Returns whether the binding is new. */
  bind(binding: Binding): boolean {
    if (binding.exchange === "") refuseDefaultExchange()
    const found = this.#exchanges.get(binding.exchange) ?? refuseMissing("exchange", binding.exchange)
    if (found.exchange.kind === "headers") checkHeadersBinding(binding.arguments ?? {})
    const id = bindingId(binding)
    const isNew = !found.bindings.has(id)
    found.bindings.set(id, binding)
    return isNew
  }

  unbind(queue: string): void {
    for (const { bindings } of this.#exchanges.values()) {
      for (const [id, binding] of bindings) if (binding.queue === queue) bindings.delete(id)
    }
  }

  route(message: Message): ReadonlySet<string> {
    const queues = new Set<string>()
    this.#route(message.exchange, message, queues, new Set())
    return queues
  }

  restart(): void {
    for (const [name, { exchange }] of this.#exchanges) if (!isDurable(exchange)) this.#exchanges.delete(name)
  }

  #route(name: string, { properties, routingKeys }: Message, queues: Set<string>, visited: Set<string>): void {
    if (name === "") for (const key of routingKeys) queues.add(key)
    const found = this.#exchanges.get(name)
    if (found === undefined || visited.has(name)) return
    visited.add(name)
    const before = queues.size
    for (const binding of found.bindings.values()) {
      if (matches(found.exchange.kind, binding, routingKeys, properties.headers ?? {})) queues.add(binding.queue)
    }
    const next = found.exchange.arguments?.[alternate]
    if (queues.size === before && typeof next === "string") {
      this.#route(next, { exchange: next, properties, routingKeys, content: empty }, queues, visited)
    }
  }
}

const empty = new Uint8Array()
