import { createRootRoute, createRoute, Outlet, retainSearchParams } from "@tanstack/react-router"
import { readShared } from "../address/search.ts"
import { PageFailed } from "./Fallbacks.tsx"
import { HolderShell } from "./HolderShell.tsx"
import { OperatorShell } from "./OperatorShell.tsx"

export const root = createRootRoute({
  validateSearch: readShared,
  // the range is carried across pages
  search: { middlewares: [retainSearchParams(["range", "utc"])] },
  component: Outlet,
  errorComponent: PageFailed,
  // the menu and the palette are there also at an address that has no page
  notFoundComponent: () => <OperatorShell isUnknown />
})

/** The pages of operators and of people on call, with the menu beside them. */
export const operatorLayout = createRoute({
  getParentRoute: () => root,
  id: "operators",
  component: () => <OperatorShell />
})

/** The pages of whoever holds a gateway key. */
export const holderLayout = createRoute({ getParentRoute: () => root, path: "my", component: HolderShell })
