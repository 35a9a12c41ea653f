import { lazyRouteComponent } from "@tanstack/react-router"
import { MissingFile } from "../../api/laterFile.ts"

/**
 * A page whose files are loaded once somebody goes there. If one of them does not arrive, the page says so until the
 * portal is loaded anew: browsers do not ask again for a script, nor Vite for a style that has failed.
 */
export const laterPage: typeof lazyRouteComponent = (read, name) => {
  let missing: MissingFile | undefined
  return lazyRouteComponent(async () => {
    if (missing !== undefined) throw missing
    try {
      return await read()
    } catch (cause) {
      missing = new MissingFile("a file of the page did not arrive", { cause })
      throw missing
    }
  }, name)
}
