import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/audit",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./AuditPage.tsx"))
})

export const auditRoutes = [list] as const
