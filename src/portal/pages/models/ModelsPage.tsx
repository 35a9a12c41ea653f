import { PageHeader } from "../../shared/page/PageHeader.tsx"

const ModelsPage = () => <PageHeader title="Models & prices" />

export default ModelsPage
