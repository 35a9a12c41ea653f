import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { inject } from "vitest"
import { end } from "../EndedProcess.ts"
import { eventually } from "../Eventually.ts"
import * as LocalPort from "../LocalPort.ts"
import * as Compose from "./Compose.ts"
import { type Files, type Mistake, repository, withMistake } from "./Files.ts"
import * as LoadBalancer from "./LoadBalancer.ts"

const { path } = LoadBalancer

const mistakes: ReadonlyArray<Mistake> = [
  [path, "server gateway-b gateway-b:8080", "", "gateway-b gets no requests"],
  [path, "gateway-b:8080", "gateway-b:8081", "gateway-b gets no requests"],
  [path, "  server gateway-a", "  server other gateway-c:8080\n  server gateway-a", "a server that is no gateway"],
  [path, "/admin-ui/readyz", "/readyz", "the gateways have no path /readyz"],
  [path, "retry-on conn-failure", "retry-on all-retryable-errors", "a request may be sent twice"],
  [path, "timeout server 660s", "timeout server 60s", "the timeout server is shorter than that of routes"],
  [path, "timeout client 660s", "", "the timeout client is shorter than that of routes"],
  [path, "timeout http-keep-alive 60s", "timeout http-keep-alive 80s", "the gateway closes idle connections first"],
  [path, "inter 2s fall 2", "inter 5s fall 3", "gateway-a closes its listener before the load balancer sees"],
  [path, "maxconn 20000", "maxconn 40000", "load-balancer has too few files for its connections"],
  [path, "bind :8080", "bind :80", "nothing leads to the port 80"],
  [path, "monitor-uri /healthz", "monitor-uri /health", "the health check asks http://127.0.0.1:8404/healthz"],
  [Compose.path, 'GATEWAY_DRAIN_DELAY_SECONDS: "10"', 'GATEWAY_DRAIN_DELAY_SECONDS: "4"', "closes its listener before"],
  [Compose.path, 'PER_ADDRESS: "16384"', 'PER_ADDRESS: "4096"', "gateway-b limits the load balancer"]
]

const haproxy = inject("haproxy")

/** The settings with the gateways at these ports of this machine, free ports in front of them, and few connections. */
const local = (files: Files, ports: ReadonlyArray<number>, proxy: number, status: number): string =>
  files(path)
    .replace("maxconn 20000", "maxconn 100")
    .replace("gateway-a:8080", `127.0.0.1:${ports[0]}`)
    .replace("gateway-b:8080", `127.0.0.1:${ports[1]}`)
    .replace("bind :8080", `bind 127.0.0.1:${proxy}`)
    .replace("bind :8404", `bind 127.0.0.1:${status}`)

const written = (text: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "svc-test-haproxy-"))
      writeFileSync(join(folder, "haproxy.cfg"), text)
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ).pipe(Effect.map((folder) => join(folder, "haproxy.cfg")))

/** A gateway that counts its requests, breaks off those to `/broken`, and is ready until told otherwise. */
const gateway = Effect.acquireRelease(
  Effect.promise(async () => {
    const state = { ready: true, requests: 0, port: 0 }
    const server = createServer((request, response) => {
      if (request.url === LoadBalancer.checkedPath(repository)) {
        response.writeHead(state.ready ? 200 : 503).end()
        return
      }
      state.requests++
      if (request.url === "/broken") request.socket.destroy()
      else response.end("done")
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    state.port = typeof address === "object" && address !== null ? address.port : 0
    return { server, state }
  }),
  ({ server }) => Effect.sync(() => server.close().closeAllConnections())
).pipe(Effect.map(({ state }) => state))

const ask = (port: number, path: string) =>
  Effect.promise(() =>
    fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", body: "{}" }).then(
      ({ status }) => status,
      () => 0
    )
  )

describe("haproxy.cfg", () => {
  it.live("keeps its rules", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* LoadBalancer.problemsOf(repository), [])
    })
  )

  it.live.each(mistakes)("%s: a mistake is found: %s → %s", ([file, right, wrong, named]) =>
    Effect.gen(function* () {
      assert.include((yield* LoadBalancer.problemsOf(withMistake(file, right, wrong))).join("\n"), named)
    })
  )

  it.live.skipIf(haproxy === null)("is accepted by HAProxy, which names a wrong setting", () =>
    Effect.gen(function* () {
      const check = (files: Files) =>
        Effect.map(written(local(files, [1, 2], 3, 4)), (file) =>
          spawnSync(haproxy ?? "", ["-c", "-f", file], { encoding: "utf8" })
        )
      assert.strictEqual((yield* check(repository)).status, 0)
      const wrong = yield* check(withMistake(path, "option abortonclose", "option abortonclosed"))
      assert.strictEqual(wrong.status, 1)
      assert.include(wrong.stderr, "abortonclosed")
    })
  )

  it.live.skipIf(haproxy === null)("sends a request once, and none to a gateway that drains", () =>
    Effect.gen(function* () {
      const gateways = [yield* gateway, yield* gateway] as const
      const [proxy, status] = yield* Effect.all([LocalPort.free, LocalPort.free])
      const file = yield* written(
        local(
          repository,
          gateways.map(({ port }) => port),
          proxy,
          status
        )
      )
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(haproxy ?? "", ["-db", "-f", file], { stdio: "ignore" })),
        (child) => end(child, "SIGKILL")
      )
      yield* eventually(ask(proxy, "/"), (status) => status === 200)
      assert.isNull(child.exitCode)
      for (const one of gateways) one.requests = 0
      assert.strictEqual(yield* ask(proxy, "/broken"), 502)
      assert.strictEqual(gateways[0].requests + gateways[1].requests, 1)

      gateways[0].ready = false
      yield* eventually(
        Effect.promise(() => fetch(`http://127.0.0.1:${status}/metrics`).then((response) => response.text())),
        (page) => /^haproxy_server_status\{proxy="gateways",server="gateway-a",state="DOWN"\} 1$/m.test(page)
      )
      for (const one of gateways) one.requests = 0
      for (let request = 0; request < 10; request++) assert.strictEqual(yield* ask(proxy, "/"), 200)
      assert.deepStrictEqual(
        gateways.map(({ requests }) => requests),
        [0, 10]
      )
    })
  )
})
