import { registerHooks } from "node:module"
import { pathToFileURL } from "node:url"
import { sourceOf } from "./PackageNames.ts"

/** For programs in processes of their own: `node --import ./test/ResolvePackageNames.ts`. */
registerHooks({
  resolve: (name, context, next) => {
    const source = sourceOf.get(name)
    return next(source === undefined ? name : pathToFileURL(source).href, context)
  }
})
