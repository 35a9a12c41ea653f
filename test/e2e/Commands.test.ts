import { createHash, randomBytes } from "node:crypto"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as RunningGateway from "../RunningGateway.ts"
import { chat } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

/** Runs a command to its end: its exit code, and what it said. */
const command = (
  deployment: Deployment.Deployment,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
) =>
  Effect.promise(async () => {
    const { exited, output } = RunningGateway.command(args, { ...deployment.environment, ...environment })
    return { code: await exited, output: output().trim() }
  })

/** Every command is a process of its own. */
const patience = 120_000

const encryptionKey = () => randomBytes(32).toString("base64")

describe.skipIf(!Deployment.available)("audit verify", () => {
  const verify = ["audit", "verify"]
  const head = /^The audit log is intact: (\d+) events, head (\d+:[0-9a-f]{64})$/

  it.live(
    "says that the log is intact, or where it is broken, by a sentence and its exit code",
    () =>
      Effect.gen(function* () {
        const deployment = yield* Deployment.make()
        const outdated = yield* command(deployment, verify)
        assert.deepStrictEqual(
          [outdated.code, /start the service once/.test(outdated.output)],
          [1, true],
          outdated.output
        )

        const gateway = yield* deployment.start({ role: "control" })
        for (const name of ["a", "b", "c"]) yield* Effect.promise(() => gateway.operate("POST", "/projects", { name }))
        const intact = yield* command(deployment, verify)
        assert.strictEqual(intact.code, 0, intact.output)
        const [, count, anchor = ""] = head.exec(intact.output) ?? []
        assert.strictEqual(count, "3", intact.output)

        yield* Effect.promise(() => gateway.operate("POST", "/projects", { name: "d" }))
        const later = yield* command(deployment, [...verify, "--expect", anchor])
        assert.deepStrictEqual([later.code, head.exec(later.output)?.[1]], [0, "4"], later.output)

        // somebody who knows how the chain is made cuts its end off, and sets the head back
        yield* deployment.rows(Schema.Any, "DELETE FROM audit_events WHERE sequence > 2")
        yield* deployment.rows(
          Schema.Any,
          "UPDATE audit_chain SET (sequence, hash) = (SELECT sequence, hash FROM audit_events WHERE sequence = 2)"
        )
        assert.strictEqual((yield* command(deployment, verify)).code, 0)
        const cut = yield* command(deployment, [...verify, "--expect", anchor])
        assert.deepStrictEqual(
          [cut.code, /does not contain the expected event: event 3/.test(cut.output)],
          [1, true],
          cut.output
        )

        yield* deployment.rows(Schema.Any, "UPDATE audit_events SET action = 'projects:delete' WHERE sequence = 1")
        const broken = yield* command(deployment, verify)
        assert.strictEqual(broken.code, 1)
        assert.match(
          broken.output,
          /^The audit log is broken at event 1 \([0-9a-f-]{36}\): its fields have been changed/
        )
      }),
    patience
  )

  it.live(
    "needs a database, and an event in the form that it printed",
    () =>
      Effect.gen(function* () {
        const deployment = yield* Deployment.make()
        const without = yield* command(deployment, verify, { DATABASE_URL: "" })
        assert.deepStrictEqual([without.code, /set DATABASE_URL/.test(without.output)], [78, true], without.output)
        const wrong = yield* command(deployment, [...verify, "--expect", "3"])
        assert.notStrictEqual(wrong.code, 0)
        // the help is above what is wrong, and that is the last word
        assert.match(wrong.output.split("\n").at(-1) ?? "", /--expect.*<sequence>:<hash>/)
      }),
    patience
  )
})

describe.skipIf(!Deployment.available)("audit archive", () => {
  const temporary = Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "svc-test-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  )

  it.live(
    "moves the beginning of the log into a file that can be verified alone, and the log says so",
    () =>
      Effect.gen(function* () {
        const deployment = yield* Deployment.make()
        const folder = yield* temporary
        const file = join(folder, "2026.jsonl")
        const gateway = yield* deployment.start({ role: "control" })
        for (const name of ["a", "b", "c"]) yield* Effect.promise(() => gateway.operate("POST", "/projects", { name }))
        const noted = /head (2:[0-9a-f]{64}|3:[0-9a-f]{64})/.exec(
          (yield* command(deployment, ["audit", "verify"])).output
        )?.[1]
        yield* Effect.promise(() => gateway.operate("POST", "/projects", { name: "d" }))

        const early = yield* command(deployment, ["audit", "archive", file, "--before", "2020-01-01"])
        assert.deepStrictEqual([early.code, /nothing was archived/.test(early.output)], [0, true], early.output)
        const archived = yield* command(deployment, ["audit", "archive", file, "--before", "2999-01-01"])
        assert.strictEqual(archived.code, 0, archived.output)
        const digest = createHash("sha256")
          .update(yield* Effect.promise(() => readFile(file)))
          .digest("hex")
        assert.match(
          archived.output,
          new RegExp(`^Moved 4 events, up to (4:[0-9a-f]{64}), from the log into .*SHA-256 of the file: ${digest}$`)
        )

        // the event that cuts them off is what is left
        const verified = yield* command(deployment, ["audit", "verify"])
        assert.match(
          verified.output,
          /^The audit log is intact: 1 events, head 5:[0-9a-f]{64}; events up to 4:[0-9a-f]{64} are archived/
        )
        const [event] = yield* deployment.rows(Schema.Any, "SELECT action, after_json FROM audit_events")
        assert.deepInclude(event, { action: "audit:archive" })
        assert.deepInclude(event.after_json, { through: 4, events: 4, file_sha256: digest })
        const gone = yield* command(deployment, ["audit", "verify", "--expect", noted ?? ""])
        assert.deepStrictEqual([gone.code, /are archived/.test(gone.output)], [1, true], gone.output)

        const missing = yield* command(deployment, ["audit", "verify-archive", `${file}.missing`])
        assert.deepStrictEqual(
          [missing.code, /\.missing does not exist\./.test(missing.output)],
          [1, true],
          missing.output
        )
        const intact = yield* command(deployment, ["audit", "verify-archive", file])
        assert.match(intact.output, /^The archive is intact: 4 events, after 0:0+ and up to 4:[0-9a-f]{64}$/)
        const again = yield* command(deployment, ["audit", "archive", file, "--before", "2999-01-01"])
        assert.deepStrictEqual([again.code, /The audit log is unchanged/.test(again.output)], [1, true], again.output)
        assert.match((yield* command(deployment, ["audit", "verify"])).output, /^The audit log is intact: 1 events/)

        const text = yield* Effect.promise(() => readFile(file, "utf8"))
        yield* Effect.promise(() => writeFile(file, text.replace('"projects:create"', '"projects:delete"')))
        const changed = yield* command(deployment, ["audit", "verify-archive", file])
        assert.deepStrictEqual(
          [changed.code, /broken at event 1 .*: its fields/.test(changed.output)],
          [1, true],
          changed.output
        )
      }),
    patience
  )
})

describe.skipIf(!Deployment.available)("operator-token create", () => {
  it.live(
    "prints a token that opens the control API, on record, where the tokens are lost",
    () =>
      Effect.gen(function* () {
        const deployment = yield* Deployment.make()
        const gateway = yield* deployment.start({ role: "control" })
        const created = yield* command(deployment, ["operator-token", "create", "--name", "after the loss"])
        assert.strictEqual(created.code, 0, created.output)
        assert.match(created.output, /^op_live_[0-9a-f]{64}$/)
        const operate = gateway.operateAs(created.output)
        const events = yield* Effect.promise(() => operate("GET", "/audit-events"))
        assert.include(JSON.stringify(events), "svc-runtime operator-token create")
        assert.notInclude(JSON.stringify(events), created.output)
        const nameless = yield* command(deployment, ["operator-token", "create", "--name", ""])
        assert.notStrictEqual(nameless.code, 0)
      }),
    patience
  )

  it.live(
    "is named where GATEWAY_ADMIN_TOKEN is ignored",
    () =>
      Effect.gen(function* () {
        const deployment = yield* Deployment.make()
        const first = yield* deployment.start({ role: "control" })
        assert.notInclude(first.output(), "GATEWAY_ADMIN_TOKEN")
        const token = `op_live_${randomBytes(32).toString("hex")}`
        const second = yield* deployment.start({ role: "control", environment: { GATEWAY_ADMIN_TOKEN: token } })
        assert.match(second.output(), /GATEWAY_ADMIN_TOKEN is ignored.*operator-token create/)
        assert.notInclude(second.output(), token)
      }),
    patience
  )
})

describe.skipIf(!Deployment.available)("secrets rotate", () => {
  it.live(
    "seals every credential anew while a gateway runs on, and a dump has none in clear",
    () =>
      Effect.gen(function* () {
        const [before, after] = [encryptionKey(), encryptionKey()]
        const deployment = yield* Deployment.make({
          environment: { GATEWAY_ENCRYPTION_KEY: after, GATEWAY_PREVIOUS_ENCRYPTION_KEY: before }
        })
        const first = yield* deployment.start({
          role: "control",
          environment: { GATEWAY_ENCRYPTION_KEY: before, GATEWAY_PREVIOUS_ENCRYPTION_KEY: "" }
        })
        yield* Effect.promise(() =>
          first.operate("POST", "/providers", {
            provider: "upstream",
            name: "main",
            base_url: "http://upstream.invalid",
            credential: "sk-canary-rotation"
          })
        )
        const Sealed = Schema.Struct({ sealed: Schema.String })
        const sealed = deployment.rows(Sealed, "SELECT sealed_credential AS sealed FROM provider_configs")
        const old = yield* sealed

        // it opens what either key sealed; a credential that it cannot open would fail the request
        const gateway = yield* deployment.start({ flags: ["--upstream", "simulator"] })
        const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
        const served = Effect.map(chat(gateway, key.raw), ({ status }) => status)
        assert.strictEqual(yield* served, 200)

        // the first process has the old key alone: it could read nothing any more
        const early = yield* command(deployment, ["secrets", "rotate"])
        assert.strictEqual(early.code, 1)
        assert.match(
          early.output,
          /^Nothing was changed: \d+ database sessions? belongs? to processes that do not have/
        )
        assert.deepStrictEqual(yield* sealed, old)

        const lost = yield* command(deployment, ["secrets", "rotate", "--force"], {
          GATEWAY_PREVIOUS_ENCRYPTION_KEY: ""
        })
        assert.strictEqual(lost.code, 1)
        assert.match(lost.output, /^Nothing was changed: provider_configs\/\S+ is sealed under neither/)
        assert.deepStrictEqual(yield* sealed, old)

        first.signal("SIGTERM")
        yield* Effect.promise(() => first.exited)
        const rotated = yield* command(deployment, ["secrets", "rotate"])
        assert.strictEqual(rotated.code, 0, rotated.output)
        assert.match(rotated.output, /^provider_configs\.sealed_credential: 1 re-encrypted$/m)
        assert.notDeepEqual(yield* sealed, old)
        assert.notInclude(JSON.stringify(yield* sealed), "canary")
        assert.strictEqual(yield* served, 200)
        assert.notInclude(gateway.output(), "cannot be opened")
        const again = yield* command(deployment, ["secrets", "rotate"])
        assert.match(again.output, /^provider_configs\.sealed_credential: 0 re-encrypted$/m)
        assert.match(again.output, /^1 were already encrypted with GATEWAY_ENCRYPTION_KEY\.$/m)

        const unset = yield* command(deployment, ["secrets", "rotate"], {
          GATEWAY_ENCRYPTION_KEY: "",
          GATEWAY_PREVIOUS_ENCRYPTION_KEY: ""
        })
        assert.deepStrictEqual([unset.code, /GATEWAY_ENCRYPTION_KEY is not set/.test(unset.output)], [78, true])
        assert.strictEqual((yield* command(deployment, ["audit", "verify"])).code, 0)
      }),
    patience
  )
})

describe.skipIf(!Deployment.available)("configuration", () => {
  it.live(
    "is written out, compared with a file and made to be as the file says",
    () =>
      Effect.gen(function* () {
        const deployment = yield* Deployment.make()
        const gateway = yield* deployment.start({ role: "control" })
        yield* Effect.promise(() => gateway.operate("POST", "/projects", { name: "team" }))
        const exported = yield* command(deployment, ["configuration", "export"])
        assert.strictEqual(exported.code, 0, exported.output)
        const document = JSON.parse(exported.output)
        assert.deepStrictEqual(document.projects, [{ name: "team" }])
        const { keys: _, routes: _1, ...rest } = document
        const part = yield* command(deployment, ["configuration", "export", "--omit", "keys", "--omit", "routes"])
        assert.deepStrictEqual(JSON.parse(part.output), rest)
        const unknown = yield* command(deployment, ["configuration", "export", "--omit", "key"])
        assert.deepStrictEqual([unknown.code, /--omit must be one of .*keys/.test(unknown.output)], [1, true])

        const directory = yield* Effect.acquireRelease(
          Effect.promise(() => mkdtemp(join(tmpdir(), "svc-configuration-"))),
          (path) => Effect.promise(() => rm(path, { recursive: true }))
        )
        const file = join(directory, "wanted.json")
        const write = (wanted: unknown) => Effect.promise(() => writeFile(file, JSON.stringify(wanted)))
        yield* write({ ...document, projects: [{ name: "team" }, { name: "other" }] })
        const planned = yield* command(deployment, ["configuration", "plan", file])
        assert.match(planned.output, /^create projects other$/m)
        const base = /^1 object to change; base ([0-9a-f]{64})$/m.exec(planned.output)?.[1] ?? ""
        const apply = ["configuration", "apply", file, "--base", base]
        const applied = yield* command(deployment, apply)
        assert.deepStrictEqual([applied.code, /1 object changed/.test(applied.output)], [0, true], applied.output)
        const late = yield* command(deployment, apply)
        assert.deepStrictEqual([late.code, /Plan the document again/.test(late.output)], [1, true], late.output)
        const nothing = yield* command(deployment, ["configuration", "plan", file])
        assert.match(nothing.output, /^0 objects to change/)
        const events = yield* deployment.rows(
          Schema.Struct({ action: Schema.String, user_agent: Schema.NullOr(Schema.String) }),
          "SELECT action, user_agent FROM audit_events ORDER BY sequence DESC LIMIT 2"
        )
        const user_agent = "svc-runtime configuration apply"
        assert.deepStrictEqual(events, [
          { action: "configuration:apply", user_agent },
          { action: "projects:create", user_agent }
        ])

        const settings = { base_url: "https://studio.example" }
        const layer = { kind: "project", scope: "team", policy: { rpm_limit: 5 }, guardrail_policy: {} }
        yield* write({ format: document.format, policy_layers: [layer], studio_connection: settings })
        const more = yield* command(deployment, ["configuration", "apply", file])
        assert.include(
          more.output,
          "Policy layer project/team, which covers 0 keys, loses: its rpm_limit is 5, where there was none."
        )
        assert.match(
          more.output,
          /^update studio_connection singleton\n {2}base_url: null -> "https:\/\/studio\.example"$/m
        )
        assert.match(more.output, /^2 objects changed/m)

        const compared = yield* command(deployment, ["prices", "plan"])
        assert.match(compared.output, /^Anthropic: read on \d{4}-\d\d-\d\d at https:\/\/\S+$/m)
        assert.match(compared.output, /^new gpt-5\n {2}input_usd_per_million: null -> 1\.25$/m)
        const seen = /to import; base ([0-9a-f]{64})$/m.exec(compared.output)?.[1] ?? ""
        const take = ["prices", "import", "gpt-5", "o3", "--base", seen]
        const taken = yield* command(deployment, take)
        assert.match(
          taken.output,
          /^gpt-5: \$1\.25 in, \$10 out\no3: \$2 in, \$8 out\n2 prices imported; base [0-9a-f]{64}$/m
        )
        const lateToo = yield* command(deployment, take)
        assert.deepStrictEqual([lateToo.code, /Compare again/.test(lateToo.output)], [1, true], lateToo.output)

        yield* write({ ...document, secrets: "canary" })
        const wrong = yield* command(deployment, ["configuration", "plan", file])
        assert.strictEqual(wrong.code, 1)
        assert.include(wrong.output, "secrets")
        assert.notInclude(wrong.output, "canary")
      }),
    patience
  )
})
