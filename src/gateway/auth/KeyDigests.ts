import { digestHex } from "../../state/Secret.ts"

/** Caches each connection's last key digest. Most connections use one key, and hashing takes 2 % of a request. */
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
