import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./HomePage.tsx"))
})

export const homeRoutes = [list] as const
