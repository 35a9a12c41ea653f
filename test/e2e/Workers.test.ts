import { existsSync } from "node:fs"
import { connect } from "node:net"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { chat, hello } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"
import * as PrometheusProcess from "./PrometheusProcess.ts"
import * as SteadyLoad from "./SteadyLoad.ts"
import * as WorkersUpstream from "./WorkersUpstream.ts"

/** Two workers of the role gateway beside an operator API. */
class Setting extends Context.Service<
  Setting,
  {
    readonly deployment: Deployment.Deployment
    readonly control: RunningGateway.RunningGateway
    readonly gateway: RunningGateway.RunningGateway
    readonly upstream: Effect.Success<typeof WorkersUpstream.make>
  }
>()("test/e2e/Workers/Setting") {
  static readonly layer = Layer.effect(
    Setting,
    Effect.gen(function* () {
      const upstream = yield* WorkersUpstream.make
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k", LOG_LEVEL: "info" }
      })
      const [control, gateway] = yield* Effect.all(
        [deployment.start({ role: "control" }), deployment.start({ role: "gateway", flags: ["--workers", "2"] })],
        { concurrency: 2 }
      )
      yield* Effect.promise(() => control.operate("PUT", "/model-prices/m", price))
      return Setting.of({ deployment, control, gateway, upstream })
    })
  )
}

/** The upstream's answer costs $0.01, by its ten output tokens. */
const price = { input_usd_per_million: 0, output_usd_per_million: 1_000 }

const newKey = (policy: object = {}) =>
  Effect.flatMap(Setting, ({ control }) => Effect.promise(() => RunningGateway.createKey(control, { policy })))

const ReadinessBody = Schema.fromJsonString(
  Schema.Struct({ status: Schema.String, checks: Schema.Record(Schema.String, Schema.String) })
)

const readiness = Effect.flatMap(Setting, ({ gateway }) =>
  Effect.promise(() =>
    fetch(`${gateway.control}/admin-ui/readyz`)
      .then((answer) => answer.text())
      .then(Schema.decodeUnknownSync(ReadinessBody))
  )
)

const allReady = eventually(readiness, ({ status }) => status === "ready")

const metricsPage = Effect.flatMap(Setting, ({ gateway }) =>
  Effect.promise(() => fetch(`${gateway.control}/admin-ui/metrics`).then((answer) => answer.text()))
)

/** The series of a metric, by their labels. */
const seriesOf = (page: string, metric: string): ReadonlyMap<string, number> =>
  new Map(
    page.split("\n").flatMap((line) => {
      const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      return name === metric ? [[labels, Number(value)] as const] : []
    })
  )

const sum = (values: Iterable<number>): number => [...values].reduce((all, value) => all + value, 0)

/** The process ids of the workers that ever served, oldest first, by what the log says. */
const workerPids = ({ output }: RunningGateway.RunningGateway): ReadonlyArray<number> =>
  [...output().matchAll(/"message":"Worker serves".*"pid":(\d+)/g)].map(([, pid]) => Number(pid))

/** The process that is worker 1 now. */
const firstWorker = ({ output }: RunningGateway.RunningGateway): number =>
  Number([...output().matchAll(/"message":"Worker serves".*"worker":1,"pid":(\d+)/g)].at(-1)?.[1])

const runs = (pid: number): boolean => existsSync(`/proc/${pid}`)

/** A connection to a worker on which a stream has begun. */
const streaming = Effect.fnUntraced(function* (key: string) {
  const { gateway } = yield* Setting
  const connection = yield* RawConnection.open(gateway.proxy)
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const body = JSON.stringify({ model: WorkersUpstream.gated, messages: hello, stream: true })
  connection.write(RawConnection.request("POST /v1/chat/completions", headers, body))
  yield* connection.until(/"one"/)
  return connection
})

const wholeStream = /\[DONE\]\s+0\r\n\r\n$/

const refusesConnections = (origin: string) =>
  Effect.callback<boolean>((resume) => {
    const { hostname, port } = new URL(origin)
    const socket = connect(Number(port), hostname, () => {
      socket.destroy()
      resume(Effect.succeed(false))
    })
    socket.on("error", () => resume(Effect.succeed(true)))
  })

describe.skipIf(!Deployment.available)("a gateway of two workers", () => {
  layer(Setting.layer, { excludeTestServices: true })((it) => {
    it.effect("serves with both, and has one page of metrics and one record of each request", () =>
      Effect.gen(function* () {
        const { deployment, gateway } = yield* Setting
        yield* allReady
        const key = yield* newKey()
        const load = yield* SteadyLoad.start(gateway.proxy, key.raw)
        yield* eventually(
          Effect.sync(() => load.answered()),
          (answered) => answered >= 100
        )
        assert.deepStrictEqual(yield* load.stop, [])
        const sent = load.answered()
        const records = yield* deployment.recorded(key.id, sent)
        assert.lengthOf(records, sent)
        assert.lengthOf(new Set(records.map(({ request_id }) => request_id)), sent)

        const page = yield* metricsPage
        const requests = seriesOf(page, "gateway_requests_total")
        assert.strictEqual(sum(requests.values()), sent)
        for (const worker of ["1", "2"]) {
          assert.isTrue(
            [...requests.keys()].some((labels) => labels.includes(`worker="${worker}"`)),
            page
          )
        }
        assert.deepStrictEqual([...seriesOf(page, "svc_workers_ready").values()], [2])
        if (PrometheusProcess.binary !== null) {
          const ask = yield* PrometheusProcess.scraping([new URL(gateway.control).host])
          const [scraped] = yield* eventually(ask("sum(gateway_requests_total)"), (found) => found.length === 1)
          assert.strictEqual(scraped?.[1], sent)
          const processes = (yield* ask("process_resident_memory_bytes")).map(([{ worker }]) => worker)
          assert.deepStrictEqual(processes.sort(), ["1", "2", undefined])
        }
        const families = [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
        assert.lengthOf(families, new Set(families).size)
      })
    )

    it.effect("spends no more than a budget holds", () =>
      Effect.gen(function* () {
        const { deployment, gateway } = yield* Setting
        const key = yield* newKey({ daily_budget_usd: 0.1 })
        const answers = yield* Effect.all(
          Array.from({ length: 200 }, () => chat(gateway, key.raw, { max_tokens: 10 })),
          { concurrency: "unbounded" }
        )
        const served = answers.filter(({ status }) => status === 200).length
        assert.isAtLeast(served, 1)
        assert.isAtMost(served, 10)
        assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))].sort(), [200, 402])
        const records = yield* deployment.recorded(key.id, answers.length)
        assert.strictEqual(sum(records.map(({ cost_nanos }) => cost_nanos ?? 0)), served * 1e7)
      })
    )

    it.effect("restarts them one after another without a failed request, and lets a long stream end", () =>
      Effect.gen(function* () {
        const { gateway, upstream } = yield* Setting
        yield* allReady
        const before = workerPids(gateway)
        const key = yield* newKey()
        const streams = yield* Effect.all([streaming(key.raw), streaming(key.raw)])
        const load = yield* SteadyLoad.start(gateway.proxy, key.raw)
        gateway.signal("SIGHUP")
        // The first worker waits for its stream. Meanwhile the second one has not been replaced.
        yield* eventually(
          Effect.sync(() => workerPids(gateway).length),
          (count) => count === before.length + 1
        )
        yield* upstream.open
        for (const stream of streams) yield* stream.until(wholeStream)
        yield* eventually(
          Effect.sync(() => gateway.output()),
          (output) => output.includes("All workers have restarted"),
          "90 seconds"
        )
        assert.deepStrictEqual(yield* load.stop, [])
        assert.isAbove(load.answered(), 200)
        assert.deepStrictEqual(before.slice(-2).filter(runs), [])
        const after = workerPids(gateway).slice(before.length)
        assert.lengthOf(after, 2)
        assert.isTrue(after.every(runs))
        yield* allReady
      })
    )

    it.effect("replaces a worker that is killed, and only its own requests fail", () =>
      Effect.gen(function* () {
        const { gateway } = yield* Setting
        yield* allReady
        const victim = firstWorker(gateway)
        const key = yield* newKey()
        process.kill(victim, "SIGSTOP")
        // The stopped worker gets some of these connections, and has not accepted the last one of them.
        const connections = yield* Effect.all(Array.from({ length: 8 }, () => RawConnection.open(gateway.proxy)))
        for (const connection of connections) {
          connection.write(RawConnection.request("GET /admin-ui/healthz"))
        }
        yield* eventually(
          Effect.sync(() => connections.filter((one) => one.received().includes('"ok"')).length),
          (answered) => answered === connections.length - 1
        )
        process.kill(victim, "SIGKILL")
        const stuck = connections.find((one) => one.received() === "")
        assert.strictEqual(yield* stuck?.closed ?? Effect.succeed("none"), "")
        const degraded = yield* eventually(readiness, ({ checks }) => checks["worker_1"] === "restarting")
        assert.deepInclude(degraded, { status: "degraded" })
        assert.deepInclude(degraded.checks, { workers: "1 of 2", worker_2: "ready" })
        assert.strictEqual((yield* chat(gateway, key.raw)).status, 200)
        const ready = yield* allReady
        assert.deepInclude(ready.checks, { workers: "2 of 2", worker_1: "ready", worker_2: "ready" })
        const restarts = seriesOf(yield* metricsPage, "svc_worker_restarts_total")
        assert.strictEqual(restarts.get('worker="1",reason="crash"'), 1)
      })
    )

    it.effect("ends like one process on SIGTERM: streams end whole, and the exit code is 0", () =>
      Effect.gen(function* () {
        const { deployment, gateway, upstream } = yield* Setting
        yield* allReady
        const key = yield* newKey()
        const streams = yield* Effect.all(Array.from({ length: 4 }, () => streaming(key.raw)))
        gateway.signal("SIGTERM")
        yield* eventually(refusesConnections(gateway.proxy), (refused) => refused)
        assert.deepInclude(yield* readiness, { status: "not_ready" })
        yield* upstream.open
        for (const stream of streams) yield* stream.until(wholeStream)
        assert.strictEqual(yield* Effect.promise(() => gateway.exited), 0)
        assert.deepStrictEqual(workerPids(gateway).filter(runs), [])
        assert.lengthOf(yield* deployment.recorded(key.id, streams.length), streams.length)
        assert.lengthOf(gateway.output().match(/^ {2}proxy /gm) ?? [], 1)
      })
    )

    it.effect("leaves no worker behind when it is killed: they end their streams, and then themselves", () =>
      Effect.gen(function* () {
        const setting = yield* Setting
        const gateway = yield* setting.deployment.start({ role: "gateway", environment: { GATEWAY_WORKERS: "2" } })
        yield* Effect.provideService(
          Effect.gen(function* () {
            yield* allReady
            const key = yield* newKey()
            const streams = yield* Effect.all([streaming(key.raw), streaming(key.raw)])
            gateway.signal("SIGKILL")
            yield* eventually(refusesConnections(gateway.proxy), (refused) => refused)
            assert.lengthOf(workerPids(gateway).filter(runs), 2)
            yield* setting.upstream.open
            for (const stream of streams) yield* stream.until(wholeStream)
            yield* eventually(
              Effect.sync(() => workerPids(gateway).filter(runs)),
              (left) => left.length === 0
            )
            assert.lengthOf(yield* setting.deployment.recorded(key.id, streams.length), streams.length)
          }),
          Setting,
          { ...setting, gateway }
        )
      })
    )
  })

  it.live("that the configuration does not allow says so once, and ends with 78", () =>
    Effect.gen(function* () {
      const { environment } = yield* Deployment.make({ environment: { GATEWAY_ADMIN_TOKEN: "short" } })
      const { child, exited, output } = RunningGateway.launch({
        role: "gateway",
        flags: ["--workers", "2"],
        environment
      })
      const code = yield* Effect.promise(() => exited).pipe(
        Effect.ensuring(Effect.sync(() => void child.kill("SIGKILL")))
      )
      assert.strictEqual(code, 78, output())
      assert.lengthOf(output().match(/GATEWAY_ADMIN_TOKEN must begin with/g) ?? [], 1, output())
    })
  )
})

describe.skipIf(!Deployment.available)("a gateway of one worker", () => {
  it.live("goes on after SIGHUP", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make({ environment: { LOG_LEVEL: "info" } })
      const gateway = yield* deployment.start({ role: "gateway", environment: { GATEWAY_WORKERS: "1" } })
      gateway.signal("SIGHUP")
      yield* eventually(
        Effect.sync(() => gateway.output()),
        (output) => output.includes("SIGHUP is ignored")
      )
      assert.isFalse(yield* refusesConnections(gateway.proxy))
    })
  )
})
