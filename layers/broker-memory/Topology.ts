import type { Binding, Declarations, Exchange, Queue } from "../../src/services/Broker.ts"
import type { BrokerState } from "./BrokerState.ts"
import type { ClientConnection } from "./ClientConnection.ts"

const bindingKey = (binding: Binding): string =>
  JSON.stringify(binding, (_, value) => (typeof value === "bigint" ? `${value}` : value))

/** Remembers the declarations of one client and repeats them on its next connection. */
export class Topology {
  readonly #broker: BrokerState
  readonly #exchanges = new Map<string, Exchange>()
  readonly #queues = new Map<string, Queue>()
  readonly #bindings = new Map<string, Binding>()

  constructor(broker: BrokerState) {
    this.#broker = broker
  }

  /** Stops at the first refused declaration. In this case, no declaration is remembered. */
  declare({ bindings, exchanges, queues }: Declarations, connection: ClientConnection): void {
    this.#broker.atomically(() => {
      for (const exchange of exchanges) this.#broker.declareExchange(exchange)
      for (const queue of queues) this.#broker.declareQueue(queue, connection)
      for (const binding of bindings) this.#broker.bind(binding, connection)
    })
    for (const exchange of exchanges) this.#exchanges.set(exchange.name, exchange)
    for (const queue of queues) this.#queues.set(queue.name, queue)
    for (const binding of bindings) this.#bindings.set(bindingKey(binding), binding)
  }

  /** Repeats all declarations, even if the broker refuses some of them. */
  redeclare(connection: ClientConnection, onRefused: (name: string, why: unknown) => void): void {
    const attempt = (name: string, work: () => void) => {
      try {
        this.#broker.atomically(work)
      } catch (error) {
        onRefused(name, error)
      }
    }
    for (const [name, exchange] of this.#exchanges) attempt(name, () => this.#broker.declareExchange(exchange))
    for (const [name, queue] of this.#queues) attempt(name, () => this.#broker.declareQueue(queue, connection))
    for (const [name, binding] of this.#bindings) attempt(name, () => this.#broker.bind(binding, connection))
  }

  forget(queues: ReadonlyArray<string>, exchanges: ReadonlyArray<string>): void {
    for (const name of exchanges) this.#exchanges.delete(name)
    for (const name of queues) this.#queues.delete(name)
    for (const [id, binding] of this.#bindings) {
      if (exchanges.includes(binding.exchange) || queues.includes(binding.queue)) this.#bindings.delete(id)
    }
  }
}
