import { Context, Option } from "effect"
import type { EncodedFile } from "../http/FileEncoding.ts"

/** A file of the portal. */
export interface PortalFile extends EncodedFile {
  readonly contentType: string
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
