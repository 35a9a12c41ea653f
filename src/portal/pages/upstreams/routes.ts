import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/upstreams",
  validateSearch: textSearch("tab", "do", "name", "key_id"),
  component: lazyRouteComponent(() => import("./UpstreamsPage.tsx"))
})

export const upstreamsRoutes = [list] as const
