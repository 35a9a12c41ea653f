import { PageHeader } from "../../shared/page/PageHeader.tsx"

const PoliciesPage = () => <PageHeader title="Policies" />

export default PoliciesPage
