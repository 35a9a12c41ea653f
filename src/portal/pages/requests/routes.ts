import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/requests",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./RequestsPage.tsx"))
})

export const requestsRoutes = [list] as const
