import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/upstreams",
  validateSearch: textSearch("tab", "do", "name", "key_id"),
  component: laterPage(() => import("./UpstreamsPage.tsx"))
})

export const upstreamsRoutes = [list] as const
