import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/system",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./SystemPage.tsx"))
})

export const systemRoutes = [list] as const
