import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose"
import { type Egress, EgressError } from "../../src/services/Egress.ts"

/** One signing key of an issuer, as it keeps it and as it publishes it. */
export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly secret: CryptoKey
  readonly jwk: JWK
}

export const signingKey = (kid: string = randomBytes(6).toString("hex"), alg = "RS256"): Effect.Effect<SigningKey> =>
  Effect.promise(async () => {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    return { kid, alg, secret: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } }
  })

/** Claims that the settings of the tests accept, at `now` (epoch milliseconds). */
export const claimsAt = (now: number, more: Readonly<Record<string, unknown>> = {}) => ({
  iss: "https://issuer.test/tenant-1/v2.0",
  tid: "tenant-1",
  aud: "api://gateway",
  sub: "user-1",
  ver: "2.0",
  iat: now / 1000 - 10,
  nbf: now / 1000 - 10,
  exp: now / 1000 + 600,
  scp: "Models.Use Models.List",
  roles: ["Reader"],
  groups: ["group-1"],
  ...more
})

export const sign = (
  key: SigningKey,
  claims: Readonly<Record<string, unknown>>,
  header: Readonly<Record<string, unknown>> = {}
): Effect.Effect<string> =>
  Effect.promise(() =>
    new SignJWT({ ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: "JWT", ...header })
      .sign(key.secret)
  )

export interface Issuer {
  /** Published from now on. */
  keys: ReadonlyArray<SigningKey>
  /** What the discovery document names. */
  issuer: string
  /** In place of the documents, when it is set. */
  broken: Effect.Effect<{ readonly status: number; readonly body: string }, EgressError> | undefined
  /** The URLs that were asked for, oldest first. */
  readonly requests: ReadonlyArray<string>
  readonly fetch: Egress["Service"]["fetch"]
}

/** An OpenID provider behind the egress door. */
export const make = (...keys: ReadonlyArray<SigningKey>): Issuer => {
  const requests: Array<string> = []
  const issuer: Issuer = {
    keys,
    issuer: "https://issuer.test/tenant-1/v2.0",
    broken: undefined,
    requests,
    fetch: ({ url }) =>
      Effect.gen(function* () {
        requests.push(url)
        const { body, status } = issuer.broken === undefined ? document(issuer, url) : yield* issuer.broken
        return { status, headers: {}, body: Buffer.from(body) }
      })
  }
  return issuer
}

export const discoveryUrl = "https://issuer.test/.well-known/openid-configuration"

const document = ({ issuer, keys }: Issuer, url: string) => {
  if (url === discoveryUrl) {
    return { status: 200, body: JSON.stringify({ issuer, jwks_uri: "https://issuer.test/keys" }) }
  }
  return { status: 200, body: JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) }
}

export const slow = Effect.fail(new EgressError({ reason: "timeout", message: "issuer.test took longer than 3000 ms" }))
