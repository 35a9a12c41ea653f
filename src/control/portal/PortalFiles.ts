import { Context, Option } from "effect"

/** A file of the portal, in every encoding that it was stored in. */
export interface PortalFile {
  readonly contentType: string
  readonly identity: Uint8Array
  readonly gzip?: Uint8Array
  readonly br?: Uint8Array
}

export interface BuiltPortal {
  /** The text of `index.html`. */
  readonly page: string
  /** By their names below `assetsPath`. */
  readonly assets: ReadonlyMap<string, PortalFile>
}

/** The built portal. There is none in a checkout in which it was not built. */
export const PortalFiles = Context.Reference<Option.Option<BuiltPortal>>("svc/control/PortalFiles", {
  defaultValue: () => Option.none()
})
