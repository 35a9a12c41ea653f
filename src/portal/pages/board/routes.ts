import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/tasks/board",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./BoardPage.tsx"))
})

export const boardRoutes = [list] as const
