import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Decision } from "../../src/gateway/Exposure.ts"
import { AdminApiExposure, UiExposure } from "../../src/gateway/model/Passthrough.ts"
import * as RawConnection from "../RawConnection.ts"
import * as Expected from "./ExposureTable.ts"
import * as Proxy from "./Proxy.ts"
import * as Served from "./Served.ts"

const anyMethod = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

/** How each decision looks from outside, by who asked. No identity is known here, so nobody gets past `forbidden`. */
const answers: Readonly<Record<Decision, readonly [status: number, code: string | undefined]>> = {
  forward: [200, undefined],
  unsupported: [404, "unsupported_route"],
  unauthenticated: [401, "missing_authorization"],
  forbidden: [403, "insufficient_identity_authorization"]
}

layer(Proxy.database, { timeout: "60 seconds" })("Exposure over HTTP", (it) => {
  for (const ui_exposure of UiExposure.literals) {
    for (const admin_api_exposure of AdminApiExposure.literals) {
      it.effect(`ui ${ui_exposure}, admin ${admin_api_exposure}: what reaches the upstream, and for whom`, () =>
        Effect.gen(function* () {
          const settings = { allowed_paths: ["/*"], allowed_methods: anyMethod, ui_exposure, admin_api_exposure }
          const gateway = yield* Proxy.make({ configured: Proxy.openWildcard(settings) })
          const key = yield* Proxy.issueKey()
          const origin = yield* Served.origin(gateway.handle)
          let forwarded = 0
          let recorded = 0
          for (const { group, method, path } of Expected.requests) {
            for (const caller of ["nobody", "key"] as const) {
              const decision = Expected.decision(ui_exposure, admin_api_exposure, group, caller)
              const open = Expected.decision(ui_exposure, admin_api_exposure, group, "nobody") === "forward"
              const answer = yield* ask(origin, method, `${path}?q=%2F..`, caller === "key" ? key.raw : undefined)
              const what = `${method} ${path} by ${caller}`
              assert.deepStrictEqual(answer, answers[decision], what)
              if (decision === "forward") {
                forwarded++
                const last = gateway.sent.at(-1)
                assert.deepInclude(last, { method, target: `${path}?q=%2F..` }, what)
                assert.isTrue(last?.headers.includes("Bearer startup-secret"), what)
                // from a trusted ingress nobody is known, whatever was sent along
                assert.strictEqual(last?.headers.includes(key.id), !open && caller === "key", what)
                if (!open) recorded++
              }
            }
          }
          assert.lengthOf(gateway.sent, forwarded)
          const records = yield* gateway.records
          assert.lengthOf(records, recorded)
          for (const record of records) {
            assert.deepInclude(record, {
              route: "/upstream/*",
              provider: "upstream",
              usage_source: "status_only",
              cost_source: "none",
              cost_mode: "none",
              status_code: 200
            })
          }
        })
      )
    }
  }

  it.effect("disguises of a sensitive path never reach the upstream while nothing is exposed", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard({ allowed_paths: ["/*"], allowed_methods: anyMethod })
      })
      const key = yield* Proxy.issueKey()
      const origin = yield* Served.origin(gateway.handle)
      const forms = Expected.sensitive.flatMap(Expected.disguises)
      assert.isAbove(forms.length, 1500)
      yield* sendRaw(origin, key.raw, forms)
      assert.deepStrictEqual(
        gateway.sent.map(({ target }) => target),
        []
      )
    })
  )

  it.effect("no detour leads out of the allowed paths, nor a changed case, method or delimiter", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard({ allowed_paths: ["/v1/files/*", "/exact"], allowed_methods: ["GET"] })
      })
      const key = yield* Proxy.issueKey()
      const origin = yield* Served.origin(gateway.handle)
      const ups = ["..", "%2e%2e", "%2E.", ".%2e", "..;", "..%2f", "..%5c", "%2e%2e%2f", "%c0%ae%c0%ae", "%252e%252e"]
      const forms = [
        ...ups.flatMap((up) => [
          `/v1/files/${up}`,
          `/v1/files/${up}/`,
          `/v1/files/${up}/x`,
          `/v1/files/${up}/${up}/key/generate`,
          `/v1/files/a/${up}/${up}/models`,
          `/exact/${up}/x`,
          `/v1/${up}/v1/files/x`
        ]),
        ...["/v1/files", "/V1/files/x", "/v1/Files/x", "/v1/filesx", "/v1/file", "/v1/%46iles/x", "/v1//files/x"],
        ...["/exact/", "/exact/x", "/exactx", "/Exact", "/exact%20", "/exact;x", "/exact%3fx", "/exact%00", "/x/exact"],
        ...["//v1/files/x", "/./v1/files/x", "/v1/files//x", "/v1/files/./x", "\\v1\\files\\x", "v1/files/x", "*"],
        ...[`${origin}/v1/files/x`, "http://elsewhere.test/v1/files/x"]
      ]
      yield* sendRaw(origin, key.raw, forms)
      for (const method of anyMethod.filter((method) => method !== "GET")) {
        assert.deepStrictEqual((yield* ask(origin, method, "/v1/files/x", key.raw))[0], 404, method)
      }
      assert.deepStrictEqual(gateway.sent, [])
      for (const path of ["/v1/files/", "/v1/files/x", "/v1/%66iles/a%20b/c", "/exact", "/%65xact?../.."]) {
        assert.deepStrictEqual(yield* ask(origin, "GET", path, key.raw), [200, undefined], path)
      }
      assert.deepStrictEqual(
        gateway.sent.map(({ target }) => target),
        ["/v1/files/", "/v1/files/x", "/v1/%66iles/a%20b/c", "/exact", "/%65xact?../.."]
      )
    })
  )
})

/** A request as bytes, and the status and code of its answer. */
const ask = (origin: string, method: string, target: string, key: string | undefined) =>
  Effect.gen(function* () {
    const connection = yield* RawConnection.open(origin)
    connection.write(
      RawConnection.request(`${method} ${target}`, {
        connection: "close",
        ...(key !== undefined && { authorization: `Bearer ${key}` })
      })
    )
    const received = yield* connection.closed
    return summary(received)
  }).pipe(Effect.scoped)

const summary = (received: string): readonly [number, string | undefined] => {
  const { body, status } = RawConnection.answerOf(received)
  const code = /"code":"(\w+)"/.exec(body.toString())?.[1]
  return [status, code]
}

/** Sends each target with every method that may carry it, and asserts that the gateway answered it itself. */
const sendRaw = (origin: string, key: string, targets: ReadonlyArray<string>) =>
  Effect.forEach(
    targets,
    (target) =>
      Effect.map(ask(origin, "GET", target, key), ([status]) => {
        assert.isTrue(status === 404 || status === 400, `GET ${target} was answered ${status}`)
      }),
    { concurrency: 8, discard: true }
  )
