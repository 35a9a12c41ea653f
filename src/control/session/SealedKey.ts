import { type Option, Redacted } from "effect"
import { openUnder, sealUnder, type Vault } from "../../state/Vault.ts"

/** The session to which a sealed key belongs. `cookie` is the value that only the browser of the session has. */
interface KeyPlace {
  readonly cookie: Redacted.Redacted
  readonly keyId: string
}

/**
 * Seals a gateway key under a key that is derived from the cookie's value and, where there is one, from
 * `GATEWAY_ENCRYPTION_KEY`. The database has the cookie by hash alone. So neither who reads the database nor who has a
 * cookie learns the gateway key, and it is lost with the row or the cookie.
 */
export const seal = (vault: Vault["Service"], place: KeyPlace, key: Redacted.Redacted): string =>
  sealUnder(sealingKey(vault, place), key, contextOf(place))

export const open = (vault: Vault["Service"], place: KeyPlace, sealed: string): Option.Option<Redacted.Redacted> =>
  openUnder(sealingKey(vault, place), sealed, contextOf(place))

const sealingKey = (vault: Vault["Service"], { cookie }: KeyPlace) =>
  vault.derive(Buffer.from(Redacted.value(cookie)), "gateway key of a session")

const contextOf = ({ keyId }: KeyPlace) => `operator_sessions/${keyId}`
