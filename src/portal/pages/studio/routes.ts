import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/studio",
  validateSearch: textSearch("tab"),
  component: lazyRouteComponent(() => import("./StudioPage.tsx"))
})

export const studioRoutes = [list] as const
