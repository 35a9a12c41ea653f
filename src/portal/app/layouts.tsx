import { createRootRoute, createRoute, Outlet, retainSearchParams, useLocation } from "@tanstack/react-router"
import { readShared } from "../address/search.ts"
import { PageFailed } from "./fallbacks/Fallbacks.tsx"
import { HolderShell } from "./HolderShell.tsx"
import { OperatorShell } from "./OperatorShell.tsx"

export const root = createRootRoute({
  validateSearch: readShared,
  // the range is carried across pages
  search: { middlewares: [retainSearchParams(["range", "utc"])] },
  component: Outlet,
  errorComponent: FrameFailed,
  notFoundComponent: () => <UnknownPage />
})

/** The frame itself has failed, so that nothing is around the note. */
function FrameFailed({ error }: { readonly error: unknown }) {
  return (
    <main>
      <PageFailed error={error} />
    </main>
  )
}

/** The menu is there also at an address that has no page. */
const UnknownPage = () =>
  useLocation({ select: ({ pathname }) => /^\/my(\/|$)/.test(pathname) }) ? (
    <HolderShell isUnknown />
  ) : (
    <OperatorShell isUnknown />
  )

/** The pages of operators and of people on call, with the menu beside them. */
export const operatorLayout = createRoute({
  getParentRoute: () => root,
  id: "operators",
  component: () => <OperatorShell />
})

/** The pages of whoever holds a gateway key. */
export const holderLayout = createRoute({ getParentRoute: () => root, path: "my", component: () => <HolderShell /> })
