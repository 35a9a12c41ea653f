import { Array as Arr, Effect, Metric, Random, type Redacted, Result, type Scope, SubscriptionRef } from "effect"
import { BrokerError, type Connection } from "../../src/services/Broker.ts"
import * as Link from "./Link.ts"

export interface Recovery {
  readonly link: (operation: BrokerError["operation"]) => Effect.Effect<Link.Link, BrokerError>
  /** Waits until there is a connection, without a timeout. */
  readonly anyLink: Effect.Effect<Link.Link>
  /** Calls `listener` with the current connection and with every later one. */
  readonly onLink: (listener: (link: Link.Link) => void) => void
  readonly state: SubscriptionRef.SubscriptionRef<Connection>
}

export interface Options extends Omit<Link.Endpoint, "url"> {
  readonly urls: Arr.NonEmptyReadonlyArray<Redacted.Redacted>
  readonly whenUnreachable: "fail" | "wait"
  readonly prepare: (link: Link.Link) => Effect.Effect<void>
}

const connected = Metric.gauge("svc_broker_connected", {
  description: "1 while the process is connected to RabbitMQ, 0 otherwise"
})
const reconnects = Metric.counter("svc_broker_reconnects_total", {
  description: "Connections to RabbitMQ that replaced a lost one, or came after failed attempts",
  incremental: true
})

/** The delay in milliseconds, at most 700, so that work resumes soon. The random part spreads the clients. */
export const pauseBefore = (attempt: number, random: number): number =>
  attempt <= 1 ? 20 * random : Math.min(50 * 2 ** (attempt - 2), 700) * (0.5 + random / 2)

/** A connection that is lost sooner counts as a failed attempt. The next attempt then waits longer. */
const stableAfterMs = 2_000

/** Keeps a connection open. The first attempt tries each address once. Later attempts continue until one succeeds. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Recovery, BrokerError, Scope.Scope> {
  const random = yield* Random.Random
  const waiting = new Set<(link: Link.Link) => void>()
  const listeners: Array<(link: Link.Link) => void> = []
  const state = yield* SubscriptionRef.make<Connection>({ _tag: "Connecting", attempt: 1, failure: "" })
  const context = yield* Effect.context<never>()
  const fork = Effect.runForkWith(context)
  let current: Link.Link | undefined
  let closed = false

  const publishState = (link: Link.Link) => {
    if (link.failure !== undefined || closed) return
    const now: Connection =
      link.blockedReason === undefined ? { _tag: "Connected" } : { _tag: "Blocked", reason: link.blockedReason }
    fork(SubscriptionRef.set(state, now))
  }

  const adopt = (link: Link.Link) =>
    Effect.sync(() => {
      if (link.failure !== undefined) return
      current = link
      connected.updateUnsafe(1, context)
      link.onBlocked(() => publishState(link))
      link.onEnd(() => {
        if (current !== link) return
        current = undefined
        connected.updateUnsafe(0, context)
      })
      publishState(link)
      for (const listener of listeners) listener(link)
      for (const resume of waiting) resume(link)
      waiting.clear()
    })

  const awaitEnd = (link: Link.Link) =>
    Effect.callback<string>((resume) => link.onEnd(() => resume(Effect.succeed(link.failure?.message ?? ""))))

  let urls = options.urls
  const open = Effect.suspend(() => {
    const [url, ...others] = urls
    urls = Arr.append(others, url)
    return Link.open({ ...options, url })
  })

  const reconnect = Effect.fnUntraced(function* (since: number, why: string) {
    let failure = why
    for (let attempt = since; ; attempt++) {
      yield* SubscriptionRef.set(state, { _tag: "Connecting", attempt, failure })
      yield* Effect.sleep(pauseBefore(attempt, random.nextDoubleUnsafe()))
      const opened = yield* Effect.result(open)
      if (Result.isSuccess(opened)) return { link: opened.success, attempt }
      const { message, reason } = opened.failure
      // An unreachable broker needs no log line. A refusal is logged, because an operator must fix its cause.
      if (reason !== "unreachable" && message !== failure)
        yield* Effect.logError(
          "RabbitMQ refuses the connection. Attempts continue, but an operator must remove the cause",
          message
        )
      failure = message
    }
  })

  const logUnusableAddress = (error: BrokerError) =>
    urls.length > 1
      ? Effect.logWarning("An address of RabbitMQ cannot be used, so the next address is tried", error.message)
      : Effect.void
  const first = yield* Effect.result(
    Effect.retry(Effect.tapError(open, logUnusableAddress), { times: urls.length - 1 })
  )
  if (Result.isFailure(first)) {
    const { message, reason } = first.failure
    if (options.whenUnreachable === "fail" || reason !== "unreachable") return yield* first.failure
    yield* Effect.logWarning("RabbitMQ cannot be reached, so the connection is retried", message)
  }

  const awaitLoss = Effect.fnUntraced(function* (link: Link.Link) {
    const why = yield* awaitEnd(link)
    yield* Effect.logWarning("The connection to RabbitMQ was lost and is retried", why)
    return why
  })
  const keepConnected = Effect.gen(function* () {
    let why = Result.isFailure(first) ? first.failure.message : yield* awaitLoss(first.success)
    let attempt = 0
    for (;;) {
      connected.updateUnsafe(0, context)
      const next = yield* reconnect(attempt + 1, why)
      reconnects.updateUnsafe(1, context)
      // Before `adopt`, no finalizer closes the connection.
      yield* Effect.onInterrupt(options.prepare(next.link), () => Effect.sync(() => next.link.destroy()))
      yield* adopt(next.link)
      if (next.link.failure === undefined) yield* Effect.logInfo("The connection to RabbitMQ is open again")
      const connectedAt = performance.now()
      why = yield* awaitLoss(next.link)
      attempt = performance.now() - connectedAt > stableAfterMs ? 0 : next.attempt
    }
  })
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      const link = current
      current = undefined
      return (link === undefined ? Effect.void : link.close()).pipe(
        Effect.andThen(SubscriptionRef.set(state, { _tag: "Closed" }))
      )
    })
  )
  reconnects.updateUnsafe(0, context)
  if (Result.isSuccess(first)) yield* adopt(first.success)
  yield* Effect.forkScoped(keepConnected)

  const someLink = Effect.callback<Link.Link>((resume) => {
    if (current !== undefined) return resume(Effect.succeed(current))
    const waiter = (link: Link.Link) => resume(Effect.succeed(link))
    waiting.add(waiter)
    return Effect.sync(() => waiting.delete(waiter))
  })
  const link: Recovery["link"] = (operation) =>
    Effect.suspend((): Effect.Effect<Link.Link, BrokerError> => {
      if (current !== undefined) return Effect.succeed(current)
      if (closed)
        return Effect.fail(
          new BrokerError({ operation, reason: "closed", message: "The connection to RabbitMQ was closed" })
        )
      return Effect.timeoutOrElse(someLink, {
        duration: options.answerWithin,
        orElse: () =>
          Effect.fail(
            new BrokerError({
              operation,
              reason: "unreachable",
              message: `Not connected to RabbitMQ within ${options.answerWithin} ms`
            })
          )
      })
    })
  return {
    link,
    anyLink: someLink,
    onLink: (listener) => {
      listeners.push(listener)
      if (current !== undefined) listener(current)
    },
    state
  }
})
