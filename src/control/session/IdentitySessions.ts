import { DateTime, Duration, Effect, Redacted, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import * as Secret from "../../state/Secret.ts"
import { ControlError } from "../api/schema/Errors.ts"
import { Timestamp } from "../api/schema/Fields.ts"
import { Scope } from "../api/schema/Security.ts"
import { Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import { Count, computedRows } from "../store/Rows.ts"
import { insertSession } from "./Sessions.ts"

/** Groups may change at the identity provider, so that sessions end whatever happens. */
const longest = Duration.hours(24)

/** The most people who may be signed in at once. */
const maxPeople = 1000

/** `name` is limited to 120 characters. */
const maxShownSubject = 115

export interface VerifiedPerson {
  readonly issuer: string
  readonly subject: string
  readonly scopes: ReadonlyArray<Scope>
}

/** The sign-in that the person began. Its state can make one session only. */
export interface BegunSignIn {
  readonly state: string
  readonly expiresAt: DateTime.Utc
}

/**
 * Begins the session of a person. The person is a row of `operator_tokens` whose secret nobody has, so that scopes, the
 * audit log and revocation work as they do for tokens. Each sign-in renews the row's scopes and its expiry.
 */
export const create = Effect.fn("IdentitySessions.create")(function* (person: VerifiedPerson, signIn: BegunSignIn) {
  const audit = yield* Audit
  return yield* audit.mutate(function* () {
    const now = yield* DateTime.now
    const endsAt = DateTime.addDuration(now, longest)
    const token = yield* renewPerson(person, endsAt)
    const session = yield* insertSession({
      tokenId: token.id,
      keyId: null,
      secretHash: Buffer.from(token.secret_hash, "hex"),
      endsAt
    })
    // Both rely on the lock that `insertSession` has taken.
    yield* useState(signIn, now)
    yield* refuseTooMany
    return {
      result: session.value,
      auditAction: { target: "session", action: "sessions:sign_in" },
      targetId: session.id,
      snapshots: yield* snapshots(null, { of: "Identity", id: token.id, created_at: now, ...person }),
      changes: [],
      actorTokenId: token.id
    }
  })
})

/** True if the state has made a session before. */
export const isUsed = Effect.fnUntraced(function* (state: string) {
  const { sql } = yield* Database
  const found = yield* sql`SELECT 1 FROM used_sign_ins WHERE state_hash = ${hashOf(state)}`
  return found.length > 0
})

const useState = Effect.fnUntraced(function* ({ expiresAt, state }: BegunSignIn, now: DateTime.Utc) {
  const { write } = yield* Mutation
  yield* write`DELETE FROM used_sign_ins WHERE expires_at <= ${DateTime.toDateUtc(now)}`
  const added = yield* write`INSERT INTO used_sign_ins (state_hash, expires_at)
    VALUES (${hashOf(state)}, ${DateTime.toDateUtc(expiresAt)}) ON CONFLICT DO NOTHING RETURNING 1 AS added`
  if (added.length === 0) return yield* usedState
})

const hashOf = (text: string) => Secret.digest(Redacted.make(text))

export const usedState = new ControlError(
  "invalid_sign_in",
  "This sign-in has been used. Sign in again with GET /admin-ui/session/oidc."
)

const renewPerson = Effect.fnUntraced(function* ({ issuer, scopes, subject }: VerifiedPerson, endsAt: DateTime.Utc) {
  const { write } = yield* Mutation
  return yield* personRows.only(write`
    INSERT INTO operator_tokens (name, token_prefix, token_hash, roles, scopes, expires_at, last_used_at, identity_hash)
    VALUES (${`oidc:${subject.slice(0, maxShownSubject)}`}, 'oidc:',
      ${Secret.digest(Secret.mint(Secret.operatorTokenPrefix))}, ${[scopes.includes("*") ? "owner" : "operator"]},
      ${scopes}, ${DateTime.toDateUtc(endsAt)}, now(), ${hashOf(JSON.stringify([issuer, subject]))})
    ON CONFLICT (identity_hash) WHERE identity_hash IS NOT NULL AND NOT disabled AND revoked_at IS NULL
    DO UPDATE SET roles = EXCLUDED.roles, scopes = EXCLUDED.scopes, expires_at = EXCLUDED.expires_at,
      last_used_at = now(), updated_at = now()
    RETURNING id, encode(token_hash, 'hex') AS secret_hash`)
})

const personRows = computedRows(Schema.Struct({ id: Schema.String, secret_hash: Schema.String }))
const countRows = computedRows(Schema.Struct({ n: Count }))

const refuseTooMany = Effect.gen(function* () {
  const { sql } = yield* Database
  const { n } = yield* countRows.only(sql`SELECT count(*) AS n FROM operator_tokens
    WHERE identity_hash IS NOT NULL AND NOT disabled AND revoked_at IS NULL AND expires_at > now()`)
  if (n <= maxPeople) return
  return yield* new ControlError(
    "too_many_operator_tokens",
    `The maximum of ${maxPeople} people who signed in at the identity provider within 24 hours is reached. Revoke the operator token of one of them.`
  )
})

const snapshots = Snapshots.of(
  Schema.Struct({
    of: Schema.String,
    id: Schema.String,
    created_at: Timestamp,
    issuer: Schema.String,
    subject: Schema.String,
    scopes: Schema.Array(Scope)
  })
)
