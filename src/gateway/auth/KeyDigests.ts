import { digestHex } from "../../state/Secret.ts"

/**
 * The digests of keys, by the connection that presented them last. Most connections present one key only, and hashing
 * it again takes two hundredths of a request's time.
 */
export class KeyDigests {
  readonly #last = new WeakMap<object, { readonly raw: string; readonly digest: string }>()

  of(connection: object, raw: string): string {
    const last = this.#last.get(connection)
    if (last?.raw === raw) return last.digest
    const digest = digestHex(raw)
    this.#last.set(connection, { raw, digest })
    return digest
  }
}
