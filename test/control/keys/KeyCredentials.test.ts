import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import fc from "fast-check"
import { KeyCredentials } from "../../../src/control/keys/KeyCredentials.ts"
import * as StartupUpstreams from "../../../src/policy/routes/StartupUpstreams.ts"
import { Database } from "../../../src/services/Database.ts"
import { Vault } from "../../../src/state/Vault.ts"
import * as Proxy from "../../gateway/Proxy.ts"

const origins = ["https://shared.test", "https://gpt.test", "https://claude.test", "https://gone.test"] as const

/** A stored credential belongs to an origin, is readable or not, or is missing in its row. */
const credential = fc.record({
  origin: fc.constantFrom(...origins, null),
  sealed: fc.constantFrom("readable", "readable", "unreadable", "none")
})
type Credential = typeof credential extends fc.Arbitrary<infer Made> ? Made : never

const mapping = fc.option(fc.record({ credential, enabled: fc.boolean() }))
const row = fc.option(fc.record({ address: fc.constantFrom(...origins), credential }))
const variable = fc.option(fc.record({ address: fc.constantFrom(...origins), hasKey: fc.boolean() }))

const installation = fc.record({
  mappings: fc.record({ key: mapping, project: mapping }),
  rows: fc.record({ both: row, openai: row, anthropic: row }),
  variables: fc.record({ both: variable, a: variable, b: variable })
})
type Installation = typeof installation extends fc.Arbitrary<infer Made> ? Made : never

const sealed = ({ sealed }: Credential, secret: string) =>
  sealed === "none" ? null : sealed === "readable" ? `clear.${secret}` : "v1.of.another.key"

const startupOf = ({ variables }: Installation): StartupUpstreams.UpstreamsByFamily => {
  const names = { both: "UPSTREAM_BASE_URL", a: "UPSTREAM_OPENAI_BASE_URL", b: "UPSTREAM_ANTHROPIC_BASE_URL" } as const
  const of = (family: "both" | "a" | "b") =>
    Option.map(Option.fromNullOr(variables[family]), ({ address, hasKey }) =>
      Proxy.upstreamOf(names[family], address, hasKey ? "of-environment" : undefined)
    )
  return { both: of("both"), a: of("a"), b: of("b") }
}

const store = Effect.fnUntraced(function* ({ mappings, rows }: Installation, key: Proxy.IssuedKey) {
  const { sql } = yield* Database
  for (const family of ["both", "openai", "anthropic"] as const) {
    const row = rows[family]
    if (row === null) continue
    yield* sql`INSERT INTO provider_configs (provider, name, base_url, family, sealed_credential, credential_origin)
      VALUES ('upstream', ${family}, ${row.address}, ${family === "both" ? null : family},
        ${sealed(row.credential, "of-provider")}, ${row.credential.origin})`
  }
  for (const scope of ["key", "project"] as const) {
    const mapping = mappings[scope]
    if (mapping === null) continue
    yield* sql`INSERT INTO upstream_credential_mappings
        (scope, ${sql(`${scope}_id`)}, enabled, sealed_credential, credential_origin)
      VALUES (${scope}, ${scope === "key" ? key.id : key.projectId}, ${mapping.enabled},
        ${sealed(mapping.credential, `of-${scope}`)}, ${mapping.credential.origin})`
  }
})

const paths = { openai: Proxy.chat, anthropic: Proxy.messages }

/** Fails if operators are told something else of the key than the upstream of each family receives from a gateway. */
const compare = Effect.fnUntraced(function* (installation: Installation) {
  yield* Proxy.reset
  const key = yield* Proxy.issueKey({}, { project: true })
  yield* store(installation, key)
  const upstreams = startupOf(installation)
  const gateway = yield* Proxy.restarted({ upstreams })
  const credentials = Context.get(
    yield* Layer.build(
      Layer.fresh(KeyCredentials.layer).pipe(
        Layer.provide([Vault.layer(Option.none()), Layer.succeed(StartupUpstreams.StartupUpstreams, upstreams)])
      )
    ),
    KeyCredentials
  )
  const told = yield* credentials.read(key.id)
  assert.deepStrictEqual(
    told.map(({ family }) => family),
    ["openai", "anthropic"]
  )
  for (const { explanation, family, places, source, state, upstream } of told) {
    gateway.sent.length = 0
    const wire = yield* gateway.ask({ target: paths[family], headers: key.headers, body: { model: "m", messages: [] } })
    const [sent] = gateway.sent
    assert.notInclude(JSON.stringify(told), "of-key")
    if (state !== "sent") {
      assert.deepStrictEqual([wire.status, sent], [500, undefined], explanation)
      continue
    }
    const names = sent?.headers.filter((_, at) => at % 2 === 0) ?? []
    const value = sent?.headers[names.indexOf(upstream?.header ?? "") * 2 + 1]
    assert.deepStrictEqual(
      [sent?.origin, value?.replace("Bearer ", "")],
      [upstream?.origin, `of-${source}`],
      explanation
    )
    assert.deepStrictEqual(
      places.filter(({ state }) => state === "decides"),
      [{ source: source ?? "key", state: "decides" }]
    )
  }
}, Effect.scoped)

layer(Proxy.database)("KeyCredentials", (it) => {
  it.effect("tells of every installation what its gateways send", () =>
    Effect.gen(function* () {
      const context = yield* Effect.context<Database>()
      const law = fc.asyncProperty(installation, (made) =>
        Effect.runPromise(Effect.provideContext(compare(made), context))
      )
      yield* Effect.promise(() => fc.assert(law, { numRuns: 100 }))
    })
  )

  it.effect("says why a credential of a key does not decide", () =>
    Effect.gen(function* () {
      const stored = { origin: "https://gpt.test", sealed: "readable" } as const
      const made: Installation = {
        mappings: { key: { credential: stored, enabled: true }, project: { credential: stored, enabled: false } },
        rows: {
          both: null,
          openai: { address: "https://gpt.test", credential: stored },
          anthropic: { address: "https://claude.test", credential: { ...stored, origin: "https://claude.test" } }
        },
        variables: { both: null, a: null, b: null }
      }
      yield* Proxy.reset
      const key = yield* Proxy.issueKey({}, { project: true })
      yield* store(made, key)
      const credentials = yield* KeyCredentials
      const [openai, anthropic] = yield* credentials.read(key.id)
      assert.deepInclude(openai, {
        state: "sent",
        source: "key",
        explanation: "Requests carry the credential of the key itself."
      })
      assert.deepInclude(anthropic, { state: "sent", source: "provider" })
      assert.deepStrictEqual(
        anthropic?.places.map(({ state }) => state),
        ["for_other_upstream", "disabled", "decides", "not_reached"]
      )
    }).pipe(
      Effect.provide(
        KeyCredentials.layer.pipe(
          Layer.provide([
            Vault.layer(Option.none()),
            Layer.succeed(StartupUpstreams.StartupUpstreams, StartupUpstreams.noUpstreams)
          ])
        )
      )
    )
  )
})
