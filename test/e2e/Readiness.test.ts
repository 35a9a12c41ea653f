import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { chat } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

const Report = Schema.Struct({ status: Schema.String, checks: Schema.Record(Schema.String, Schema.String) })

const readiness = ({ control }: Pick<RunningGateway.RunningGateway, "control">) =>
  Effect.promise(async (signal) => {
    const response = await fetch(`${control}/admin-ui/readyz`, { signal })
    return { code: response.status, ...Schema.decodeUnknownSync(Report)(await response.json()) }
  })

/** A deployment whose database is behind a proxy. */
const deployed = Effect.gen(function* () {
  const upstream = yield* SimulatorServer.serve()
  const proxies: Array<TcpProxy.TcpProxy> = []
  const deployment = yield* Deployment.make({
    databaseFor: (url) =>
      Effect.gen(function* () {
        const to = new URL(Redacted.value(url))
        const proxy = yield* TcpProxy.make({ host: to.hostname, port: Number(to.port || 5432) })
        proxies.push(proxy)
        to.hostname = "127.0.0.1"
        to.port = String(proxy.port)
        return to.href
      }),
    environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k", LOG_LEVEL: "warn" }
  })
  const [postgres] = proxies
  if (postgres === undefined) return assert.fail("the database is not behind a proxy")
  return { deployment, postgres }
})

/** A process from its first moment on: where its listeners will be, and what it says. */
const launched = (deployment: Deployment.Deployment, role: "gateway" | "all") =>
  Effect.gen(function* () {
    const [proxy, control] = [yield* LocalPort.free, yield* LocalPort.free]
    const { child, exited, output } = yield* Effect.acquireRelease(
      Effect.sync(() =>
        RunningGateway.launch({
          role,
          environment: {
            ...deployment.environment,
            GATEWAY_ADMIN_TOKEN: deployment.adminToken,
            GATEWAY_BIND_ADDR: `127.0.0.1:${proxy}`,
            GATEWAY_CONTROL_BIND_ADDR: `127.0.0.1:${control}`
          }
        })
      ),
      ({ child, exited }) =>
        Effect.promise(async () => {
          child.kill("SIGKILL")
          await exited
        })
    )
    return { child, exited, output, proxy, at: { control: `http://127.0.0.1:${control}` }, port: control }
  })

/** What a load balancer that knows the proxy listener alone is told. */
const probed = (proxy: string, path: string, method = "GET") =>
  Effect.promise(async (signal) => {
    const response = await fetch(`${proxy}/admin-ui/${path}`, { signal, method })
    return [response.status, await response.text()]
  })

describe.skipIf(!Deployment.available)("readiness", { timeout: 120_000 }, () => {
  it.live("is told on the proxy listener, too, in one word", () =>
    Effect.gen(function* () {
      const { deployment, postgres } = yield* deployed
      const { proxy } = yield* deployment.start()
      assert.deepStrictEqual(yield* probed(proxy, "healthz"), [200, '{"status":"ok"}'])
      assert.deepStrictEqual(yield* probed(proxy, "readyz"), [200, '{"status":"ready"}'])
      assert.deepStrictEqual(yield* probed(proxy, "readyz", "HEAD"), [200, ""])
      assert.strictEqual((yield* probed(proxy, "readyz", "POST"))[0], 404)
      assert.strictEqual((yield* probed(proxy, "readyz/"))[0], 404)
      assert.strictEqual((yield* probed(proxy, "metrics"))[0], 404)
      const gateway = yield* deployment.start({ role: "gateway" })
      yield* postgres.cut
      const { code } = yield* eventually(readiness(gateway), ({ status }) => status === "degraded", "30 seconds")
      assert.strictEqual(code, 200)
      yield* eventually(probed(gateway.proxy, "readyz"), ([, text]) => text === '{"status":"degraded"}', "30 seconds")
      const [down] = yield* eventually(probed(proxy, "readyz"), ([status]) => status !== 200, "30 seconds")
      assert.strictEqual(down, 503)
    })
  )

  it.live.each(["gateway", "all"] as const)(
    "of role %s: ready only with its proxy listener open, though the database goes away before that",
    (role) =>
      Effect.gen(function* () {
        const { deployment, postgres } = yield* deployed
        yield* deployment.start()
        const { at, child, output, port, proxy } = yield* launched(deployment, role)
        yield* eventually(Effect.exit(LocalPort.answers(port)), ({ _tag }) => _tag === "Success", "60 seconds")
        yield* postgres.cut
        const seen: Array<string> = []
        const probe = Effect.gen(function* () {
          const { checks, code } = yield* readiness(at)
          seen.push(`${code} ${checks["listeners"]}`)
          // whoever is told so may send at once
          if (code === 200) yield* LocalPort.answers(proxy)
          return code
        })
        for (let probes = 0; probes < 10; probes++) yield* probe
        assert.isNull(child.exitCode, output())
        yield* postgres.restore
        yield* eventually(probe, (code) => code === 200, "60 seconds")
        assert.strictEqual(seen.at(-1), "200 open")
      })
  )

  it.live("without the database a gateway is degraded and serves, the others are not ready, and the API says 503", () =>
    Effect.gen(function* () {
      const { deployment, postgres } = yield* deployed
      const [all, gateway] = yield* Effect.all([deployment.start(), deployment.start({ role: "gateway" })], {
        concurrency: 2
      })
      const key = yield* Effect.promise(() => RunningGateway.createKey(all))
      // The notice that the key was made may come late, and makes the gateway forget the key. Notices come in their order,
      // so none is on its way once the gateway has obeyed two more.
      for (const [policy, status] of [
        [{ deny: true }, 403],
        [null, 200]
      ] as const) {
        yield* Effect.promise(() => all.operate("PATCH", `/keys/${key.id}`, { policy }))
        yield* eventually(chat(gateway, key.raw), (answer) => answer.status === status)
      }
      const upstreams = { upstream_openai: "UPSTREAM_BASE_URL", upstream_anthropic: "UPSTREAM_BASE_URL" }
      const up = { database: "up", redis: "up", listeners: "open", configuration: "current", ...upstreams }
      assert.deepStrictEqual(yield* readiness(gateway), { code: 200, status: "ready", checks: up })

      yield* postgres.cut
      const checks = { ...up, database: "down" }
      yield* eventually(readiness(gateway), ({ status }) => status === "degraded")
      assert.deepStrictEqual(yield* readiness(gateway), { code: 200, status: "degraded", checks })
      assert.deepStrictEqual(yield* readiness(all), { code: 503, status: "not_ready", checks })
      assert.strictEqual((yield* chat(gateway, key.raw)).status, 200)
      const asked = Effect.promise(async (signal) => {
        const answers = await Promise.all(
          [undefined, '{"name":"never"}'].map((body) =>
            fetch(`${all.control}/admin-ui/admin/projects`, {
              signal,
              headers: { authorization: `Bearer ${deployment.adminToken}`, "content-type": "application/json" },
              ...(body !== undefined && { method: "POST", body })
            })
          )
        )
        return Promise.all(answers.map(async (answer) => [answer.status, JSON.parse(await answer.text()).error?.code]))
      })
      const unavailable = [
        [503, "store_unavailable"],
        [503, "store_unavailable"]
      ]
      assert.deepStrictEqual(yield* asked, unavailable)
      assert.deepStrictEqual(yield* asked, unavailable)

      yield* postgres.restore
      yield* eventually(readiness(gateway), ({ status }) => status === "ready")
      yield* eventually(readiness(all), ({ code }) => code === 200)

      // with a session that is open when the server falls silent, and without
      yield* eventually(asked, ([read]) => read?.[0] === 200)
      yield* postgres.freeze
      assert.deepStrictEqual(yield* asked, unavailable)
      assert.deepStrictEqual(yield* asked, unavailable)
      yield* postgres.thaw
      yield* eventually(asked, ([read]) => read?.[0] === 200)
    })
  )
})
